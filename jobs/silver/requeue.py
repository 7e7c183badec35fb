"""Decodes stored records again: quarantined records with a newer decoder, and assignments that were over the limit
`max_resources` with a higher limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce
from operator import and_
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.spark.spark import persisted
from jobs.tables.append import append_frame
from jobs.tables.delta_io import read
from jobs.tables.replace import NEW
from jobs.tables.spark_commit import commit_by_spark
from pipelines.arrow_types import row_type
from pipelines.bronze_batch import Records, bronze, stored_body
from pipelines.decoding.record_decoding import Decoded, Quarantined, decode_record
from pipelines.decoding.source_record import SourceRecord
from pipelines.limits import Limits
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE
from schemas.records import OFFSETS_TOPIC
from schemas.states import QuarantineReason

CLOSED = f'"reason":"{QuarantineReason.OVERSIZED}"'
"""Part of the body of a record with a blob that `member_blobs.closed_if_too_large` did not decode."""

PARTITION = ("cluster", "log_epoch", "source_partition")
NUMBERS = (*PARTITION[1:], "source_offset")
OFFSET = {COORDINATOR_RECORDS: "source_offset", OFFSET_COMMITS: "first_offset"}


def requeue(spark: SparkSession, warehouse: Path) -> int:
    """Append the records that can be decoded now to their tables, and remove them from quarantine; return their number.

    After a crash it can be repeated and appends nothing twice. Each commit becomes a run of one, because the runs
    around it were cut at its offset.
    """
    kept = read(spark, warehouse, QUARANTINE).where(F.col("source") == OFFSETS_TOPIC).toArrow()
    readable = list(_readable(kept))
    if not readable:
        return 0
    for table, offset in OFFSET.items():
        rows = pa.concat_arrays([found[table.name] for found in readable])
        if not len(rows):
            continue
        position = [*PARTITION, offset]
        new = spark.createDataFrame(pa.Table.from_struct_array(rows.cast(row_type(table))))
        fresh = new.join(read(spark, warehouse, table).select(*position), position, "left_anti").select(*table.names)
        append_frame(fresh, warehouse, table)
    _forget(spark, warehouse, pa.concat_arrays([found["position"] for found in readable]))
    return len(readable)


def reopen(spark: SparkSession, warehouse: Path, limits: Limits) -> int:
    """Decode the records whose assignments were too large again, and replace the bodies that fit `limits` now.

    Return their number.
    """
    position = ", ".join(f"{name} {kind}" for name, kind in (("cluster", "STRING"), *((n, "BIGINT") for n in NUMBERS)))
    closed = read(spark, warehouse, COORDINATOR_RECORDS).where(F.col("body").contains(CLOSED))
    raw = closed.select("cluster", *(F.col(name).cast("BIGINT") for name in NUMBERS), "raw_key", "raw_value", "body")
    decoded = raw.mapInArrow(partial(_opened, limits.resources), f"{position}, body STRING")
    with persisted(decoded) as opened:
        count = opened.count()
        if count:

            def replace(name: str) -> None:
                merge = _renamed(opened).mergeInto(name, _is_same())
                merge.whenMatched().update({"body": F.col(f"{NEW}body")}).merge()

            commit_by_spark(warehouse, COORDINATOR_RECORDS, replace)
        return count


def _opened(max_resources: int, given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in given:
        rows = []
        for row in batch.to_pylist():
            decoded = decode_record(row.pop("raw_key"), row.pop("raw_value"), max_resources)
            if isinstance(decoded, Decoded) and (body := stored_body(decoded)) != row["body"]:
                rows.append(row | {"body": body})
        kept = [field for field in batch.schema if not field.name.startswith("raw_")]
        yield pa.RecordBatch.from_pylist(rows, schema=pa.schema(kept))


def _forget(spark: SparkSession, warehouse: Path, positions: pa.StructArray) -> None:
    done = spark.createDataFrame(pa.Table.from_struct_array(positions))
    is_done = (F.col("source") == OFFSETS_TOPIC) & _is_same()

    def delete(name: str) -> None:
        _renamed(done).mergeInto(name, is_done).whenMatched().delete().merge()

    commit_by_spark(warehouse, QUARANTINE, delete)


def _renamed(rows: DataFrame) -> DataFrame:
    return rows.select(*(F.col(name).alias(f"{NEW}{name}") for name in rows.columns))


def _is_same() -> Column:
    return reduce(and_, (F.col(name) == F.col(f"{NEW}{name}") for name in (*PARTITION, "source_offset")))


def _readable(kept: pa.Table) -> Iterator[dict[str, pa.StructArray]]:
    """Yield for each decodable record its rows by table name, and its `position`."""
    for row in kept.to_pylist():
        if isinstance(decode_record(row["raw_key"], row["raw_value"]), Quarantined):
            continue
        position = {name: row[name] for name in (*PARTITION, "source_offset")}
        kind = pa.struct([(name, row_type(QUARANTINE).field(name).type) for name in position])
        yield bronze(_alone(row), cluster=row["cluster"]) | {"position": pa.array([position], kind)}


def _alone(row: dict[str, Any]) -> Records:
    at = row["record_at"]
    timestamp_ms = -1 if at is None else round(at.timestamp() * 1000)
    record = SourceRecord(row["source_partition"], row["source_offset"], timestamp_ms, row["raw_key"], row["raw_value"])
    return Records.of([record], row["log_epoch"])
