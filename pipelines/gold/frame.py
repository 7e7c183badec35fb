"""Spark version of `groups.gold_of`: from silver data frames to one column of rows per gold table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.gold.groups import EARLIER_MS, INPUTS, TIMES, Known, gold_of
from pipelines.gold.memberships import Silver
from pipelines.gold.rows import AnalysisConfig
from pipelines.rows_of_tables import ddl, stored_batches
from schemas.gold import GROUP_TABLES
from schemas.silver import GENERATIONS
from schemas.tables import Table
from schemas.thresholds import DAY_MS

ROWS_PER_BATCH = 2_000


def gold(
    silver: Mapping[Table, DataFrame],
    scope: DataFrame,
    known: Known,
    config: AnalysisConfig,
    tables: Sequence[Table] = GROUP_TABLES,
) -> DataFrame:
    """Analyze the groups of `scope`.

    Args:
        silver: the tables of `INPUTS`.
        scope: columns cluster, group_id and since_at, the day from which the group's gold rows are wanted.
        known: facts about the clusters.
        config: configuration of the analysis.
        tables: the gold tables to compute.

    Returns:
        One column per gold table, a struct of its columns. Each row has a value in one of them; the others are NULL.
    """
    starts = _starts(silver[GENERATIONS], scope, config)
    first, *rest = (_side(table, silver[table], starts) for table in INPUTS)
    for side in rest:
        first = first.unionByName(side, allowMissingColumns=True)
    ordered = first.repartition("cluster", "group_id").sortWithinPartitions("cluster", "group_id")
    return ordered.mapInArrow(partial(_analyse, known, config, tables), ddl(tables))


def _starts(generations: DataFrame, scope: DataFrame, config: AnalysisConfig) -> DataFrame:
    """Return the time from which each group's rows are needed: the generation in force when the window begins."""
    day = F.floor(F.unix_millis("since_at") / DAY_MS) * DAY_MS
    wanted = F.broadcast(scope.withColumn("cut", (day - config.window_ms - EARLIER_MS).cast("bigint")))
    before = F.unix_millis("joined_at") < F.col("cut")
    found = (
        wanted.join(generations.select("cluster", "group_id", "joined_at"), ["cluster", "group_id"], "left")
        .groupBy("cluster", "group_id", "since_at", "cut")
        .agg(F.max(F.when(before, F.unix_millis("joined_at"))).alias("base"))
    )
    since = F.unix_millis("since_at").alias("since_ms")
    return found.select("cluster", "group_id", since, F.coalesce("base", "cut").alias("from_ms"))


def _side(table: Table, rows: DataFrame, starts: DataFrame) -> DataFrame:
    """Return cluster, group_id, since_ms and the row as a struct, with timestamps in milliseconds."""
    fields = [
        F.unix_millis(c.name).alias(c.name) if c.type == "TIMESTAMP" else F.col(c.name).alias(c.name)
        for c in table.columns
    ]
    joined = rows.join(F.broadcast(starts), ["cluster", "group_id"])
    needed = joined.where(F.unix_millis(TIMES[table.name]) >= F.col("from_ms"))
    return needed.select("cluster", "group_id", "since_ms", F.struct(*fields).alias(table.name))


def _analyse(
    known: Known, config: AnalysisConfig, tables: Sequence[Table], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    out: dict[str, list[Mapping[str, Any]]] = {table.name: [] for table in tables}
    for (cluster, group_id), of_group in groupby(rows, key=lambda row: (row["cluster"], row["group_id"])):
        mine = list(of_group)
        silver = {table.name: [row[table.name] for row in mine if row[table.name] is not None] for table in INPUTS}
        found = gold_of((cluster, group_id), cast("Silver", silver), mine[0]["since_ms"], known, config, tables)
        for name, new in found.items():
            out[name] += new
        if sum(map(len, out.values())) >= ROWS_PER_BATCH:
            yield from stored_batches(out, tables)
            out = {table.name: [] for table in tables}
    yield from stored_batches(out, tables)
