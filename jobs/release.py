"""Out of quarantine: records of `__consumer_offsets` that a newer decoder reads move to where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.conflicts import turn
from jobs.delta_io import read, table_path
from pipelines.arrow_types import row_type
from pipelines.bronze_batch import TOPIC, Records, SourceRecord, bronze
from pipelines.record_decoding import Quarantined, decode_record
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS, QUARANTINE

PLACE = ("cluster", "log_epoch", "source_partition")
OFFSET = {COORDINATOR_RECORDS: "source_offset", OFFSET_COMMITS: "first_offset"}


def release(spark: SparkSession, warehouse: Path) -> int:
    """Append what can be read now to its table and take it out of quarantine; returns how many records.

    Repeated after a crash, it appends nothing twice. Commits come out as runs of one: what was folded around them was
    cut where they are.
    """
    kept = read(spark, warehouse, QUARANTINE).where(F.col("source") == TOPIC).toArrow()
    readable = list(_readable(kept))
    if not readable:
        return 0
    for table, offset in OFFSET.items():
        rows = pa.concat_arrays([found[table.name] for found in readable])
        if not len(rows):
            continue
        place = [*PLACE, offset]
        new = spark.createDataFrame(pa.Table.from_struct_array(rows.cast(row_type(table))))
        fresh = new.join(read(spark, warehouse, table).select(*place), place, "left_anti").select(*table.names)
        path = table_path(warehouse, table)
        with turn(path, alone=True):
            fresh.write.format("delta").mode("append").save(path)
    _forget(spark, warehouse, pa.concat_arrays([found["place"] for found in readable]))
    return len(readable)


def _forget(spark: SparkSession, warehouse: Path, places: pa.StructArray) -> None:
    done = spark.createDataFrame(pa.Table.from_struct_array(places))
    same = " AND ".join(f"q.{name} = d.{name}" for name in (*PLACE, "source_offset"))
    path = table_path(warehouse, QUARANTINE)
    with turn(path, alone=True):
        target = DeltaTable.forPath(spark, path).alias("q")
        target.merge(done.alias("d"), f"q.source = '{TOPIC}' AND {same}").whenMatchedDelete().execute()


def _readable(kept: pa.Table) -> Iterator[dict[str, pa.StructArray]]:
    """Of each record that can be read its rows by table name, and its `place`."""
    for row in kept.to_pylist():
        if isinstance(decode_record(row["raw_key"], row["raw_value"]), Quarantined):
            continue
        place = {name: row[name] for name in (*PLACE, "source_offset")}
        kind = pa.struct([(name, row_type(QUARANTINE).field(name).type) for name in place])
        yield bronze(_alone(row), cluster=row["cluster"]) | {"place": pa.array([place], kind)}


def _alone(row: dict[str, Any]) -> Records:
    at = row["record_at"]
    timestamp_ms = -1 if at is None else round(at.timestamp() * 1000)
    record = SourceRecord(row["source_partition"], row["source_offset"], timestamp_ms, row["raw_key"], row["raw_value"])
    return Records.of([record], row["log_epoch"])
