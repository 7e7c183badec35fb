"""Spark version of `disturbances.disturbances`: from silver data frames to the disturbances of many groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.gold.storms.disturbances import MEMORY_MS, disturbances
from schemas.rows import GenerationRow, GroupEventRow
from schemas.silver import GENERATIONS, GROUP_EVENTS
from schemas.tables import Table

SIDES = {GENERATIONS: ("generation", "joined_at"), GROUP_EVENTS: ("event", "event_at")}
"""By table: the column of its rows as a struct, and their time."""

SQL_TYPES = {pa.string(): "STRING", pa.int64(): "BIGINT", pa.bool_(): "BOOLEAN"}


def disturbances_of_groups(
    generations: DataFrame, events: DataFrame, since: DataFrame, columns: Sequence[pa.Field]
) -> DataFrame:
    """Return the disturbances of groups since a time of each group.

    Args:
        generations: the columns of `generations` that `disturbances` reads.
        events: the columns of `group_events` that it reads.
        since: cluster, group_id and `since_ms`.
        columns: the columns of the result: cluster and the fields of `Disturbance`.
    """
    wanted = F.broadcast(since)
    records = _side(GENERATIONS, generations, wanted)
    rows = records.unionByName(_side(GROUP_EVENTS, events, wanted), allowMissingColumns=True)
    ordered = rows.repartition("cluster", "group_id").sortWithinPartitions("cluster", "group_id")
    schema = pa.schema(list(columns))
    ddl = ", ".join(f"`{field.name}` {SQL_TYPES[field.type]}" for field in schema)
    return ordered.mapInArrow(partial(_disturbances, schema), ddl)


def _side(table: Table, rows: DataFrame, since: DataFrame) -> DataFrame:
    """Return cluster, group_id, since_ms and the row as a struct, with timestamps in milliseconds."""
    name, time = SIDES[table]
    kinds = {column.name: column.type for column in table.columns}
    fields = [
        (F.unix_millis(column) if kinds[column] == "TIMESTAMP" else F.col(column)).alias(column)
        for column in rows.columns
    ]
    needed = rows.join(since, ["cluster", "group_id"]).where(F.unix_millis(time) >= F.col("since_ms") - MEMORY_MS)
    return needed.select("cluster", "group_id", "since_ms", F.struct(*fields).alias(name))


def _disturbances(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for (cluster, group_id), of_group in groupby(rows, key=lambda row: (row["cluster"], row["group_id"])):
        mine = list(of_group)
        generations, events = ([row[name] for row in mine if row[name] is not None] for name, _ in SIDES.values())
        found = disturbances(group_id, cast("list[GenerationRow]", generations), cast("list[GroupEventRow]", events))
        late: list[dict[str, Any]] = [{"cluster": cluster, **asdict(d)} for d in found if d.at >= mine[0]["since_ms"]]
        if late:
            yield pa.RecordBatch.from_pylist(late, schema=schema)
