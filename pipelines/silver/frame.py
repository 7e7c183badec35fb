"""Spark's shell around `rows.silver_rows`: bronze in, one column of rows per silver table out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.arrow_types import instants, row_type
from pipelines.silver.history import History
from pipelines.silver.rows import silver_rows
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.silver import SILVER
from schemas.tables import Table

INPUTS = {"record": COORDINATOR_RECORDS, "run": OFFSET_COMMITS, "event": COORDINATOR_EVENTS}
RAW = ("raw_key", "raw_value")
ROWS_PER_BATCH = 2_000


def silver(records: DataFrame, runs: DataFrame, events: DataFrame, *, quiet_ms: int) -> DataFrame:
    """Rebuild every group whose whole history is in the three bronze frames.

    Args:
        records: `coordinator_records`.
        runs: `offset_commits`.
        events: `coordinator_events`; lines without a group are ignored.
        quiet_ms: pause that ends an episode (`rebalances`).

    Returns:
        One column per silver table, a struct of that table's columns; each row holds one of them, the rest are NULL.
    """
    sides = zip(INPUTS, (records, runs, events), strict=True)
    history = _union([_side(name, frame) for name, frame in sides])
    ordered = history.repartition("cluster", "group_id").sortWithinPartitions("cluster", "group_id")
    schema = ", ".join(f"{table.name} STRUCT<{_ddl(table)}>" for table in SILVER)
    return ordered.mapInArrow(partial(_rebuild, quiet_ms), schema)


def table_of(rebuilt: DataFrame, table: Table) -> DataFrame:
    """The rows of one table out of what `silver` returned."""
    return rebuilt.where(F.col(table.name).isNotNull()).select(f"{table.name}.*")


def _ddl(table: Table) -> str:
    return ", ".join(f"`{c.name}`: {c.type}" for c in table.columns)


def _side(name: str, frame: DataFrame) -> DataFrame:
    """cluster, group_id and the row as a struct, instants as milliseconds, the others' structs absent."""
    table = INPUTS[name]
    fields = [
        F.unix_millis(c.name).alias(c.name) if c.type == "TIMESTAMP" else F.col(c.name)
        for c in table.columns
        if c.name not in RAW
    ]
    return frame.where(F.col("group_id").isNotNull()).select("cluster", "group_id", F.struct(*fields).alias(name))


def _union(sides: list[DataFrame]) -> DataFrame:
    first, *rest = sides
    for side in rest:
        first = first.unionByName(side, allowMissingColumns=True)
    return first


def _rebuild(quiet_ms: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    out: dict[str, list[dict[str, Any]]] = {table.name: [] for table in SILVER}
    for (cluster, group_id), of_group in groupby(rows, key=lambda row: (row["cluster"], row["group_id"])):
        for name, found in _of_group(cluster, group_id, list(of_group), quiet_ms).items():
            out[name] += found
        if sum(map(len, out.values())) >= ROWS_PER_BATCH:
            yield _batch(out)
            out = {table.name: [] for table in SILVER}
    if any(out.values()):
        yield _batch(out)


def _of_group(
    cluster: str, group_id: str, rows: list[dict[str, Any]], quiet_ms: int
) -> dict[str, list[dict[str, Any]]]:
    records = [row["record"] for row in rows if row["record"] is not None]
    for record in records:
        record["body"] = json.loads(record["body"])
    history = History.of(
        cluster,
        group_id,
        records,
        [row["run"] for row in rows if row["run"] is not None],
        [row["event"] for row in rows if row["event"] is not None],
    )
    return silver_rows(history, quiet_ms)


def _batch(rows: dict[str, list[dict[str, Any]]]) -> pa.RecordBatch:
    """One row a table row: the table's own column holds it, the others are null."""
    columns, total, before = [], sum(map(len, rows.values())), 0
    for table in SILVER:
        mine = [_microseconds(row, table) for row in rows[table.name]]
        after = total - before - len(mine)
        columns.append(pa.array([None] * before + mine + [None] * after, type=row_type(table)))
        before += len(mine)
    return pa.RecordBatch.from_arrays(columns, names=[table.name for table in SILVER])


def _microseconds(row: dict[str, Any], table: Table) -> dict[str, Any]:
    return row | {name: row[name] * 1000 for name in instants(table) if row.get(name) is not None}
