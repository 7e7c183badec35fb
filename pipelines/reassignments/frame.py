"""The functions that apply `rows.reassignment_rows` to bronze: one for Spark frames and one for rows in memory."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.arrow_types import stored, timestamp_columns
from pipelines.reassignments.rows import KINDS, reassignment_rows
from pipelines.reassignments.statements import RULES_MS
from pipelines.rows_of_tables import by_table, ddl, stored_batches
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS
from schemas.silver import REASSIGNMENT_TABLES
from schemas.tables import Table

Row = dict[str, Any]
MARGIN = timedelta(milliseconds=2 * RULES_MS)
"""Time between the rows that are rebuilt and the rows that stay unchanged. It is long enough that a statement on one
side does not affect the other side.
"""

TIMES = {ADMIN_OBSERVATIONS: "observed_at", COORDINATOR_EVENTS: "event_at"}
OF_INTEREST = {
    ADMIN_OBSERVATIONS: f"kind IN ({', '.join(repr(str(kind)) for kind in KINDS)})",
    COORDINATOR_EVENTS: "topic IS NOT NULL",
}
"""SQL conditions for the rows that affect a reassignment. Both Spark and DuckDB can run them."""

OBSERVED = ("observed_at", "kind", "body")
LOGGED = (
    "event_at",
    "source_id",
    "line_no",
    "event_kind",
    "broker_id",
    "topic",
    "partition",
    "topic_id",
    "partition_epoch",
    "replicas",
    "replicas_before",
    "adding",
    "removing",
    "isr",
    "leader",
)
COLUMNS = {ADMIN_OBSERVATIONS: OBSERVED, COORDINATOR_EVENTS: LOGGED}
SUBJECTS = {
    ADMIN_OBSERVATIONS: "kind, json_extract_string(body, '$.topic')",
    # A leader's line does not name the replicas, so the last line that names them is kept as well.
    COORDINATOR_EVENTS: "topic, partition, replicas IS NOT NULL",
}
"""SQL of DuckDB for the columns that identify what a row is about."""


def reassignments(observations: DataFrame, events: DataFrame) -> DataFrame:
    """Rebuild the reassignments of the clusters in `admin_observations` and `coordinator_events`.

    Returns:
        One struct column per table, with that table's columns. Each row fills one of them; the others are NULL.
    """
    seen, line = _struct("seen", OBSERVED, ADMIN_OBSERVATIONS), _struct("line", LOGGED, COORDINATOR_EVENTS)
    polled = observations.where(OF_INTEREST[ADMIN_OBSERVATIONS]).select("cluster", seen)
    logged = events.where(OF_INTEREST[COORDINATOR_EVENTS]).select("cluster", line)
    both = polled.unionByName(logged, allowMissingColumns=True)
    ordered = both.repartition("cluster").sortWithinPartitions("cluster")
    return ordered.mapInArrow(_rebuild, ddl(REASSIGNMENT_TABLES))


def reassignments_of_few(observations: Iterable[Row], lines: Iterable[Row]) -> dict[Table, pa.Table]:
    """Return the rows that `reassignments` returns, as one Arrow table per table.

    Args:
        observations: rows of `admin_observations` with the columns `OBSERVED` and timestamps in ms, either all rows of
            a cluster or those that `since_cut` selects.
        lines: the same of `coordinator_events`, with the columns `LOGGED`.
    """
    clusters: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for row in observations:
        clusters[row["cluster"]][0].append(row | {"body": json.loads(row["body"])})
    for row in lines:
        clusters[row["cluster"]][1].append(row)
    out: dict[str, list[Mapping[str, Any]]] = {table.name: [] for table in REASSIGNMENT_TABLES}
    for cluster, sides in clusters.items():
        for name, found in by_table(reassignment_rows(cluster, *sides)).items():
            out[name] += found
    return {table: stored(out[table.name], table) for table in REASSIGNMENT_TABLES}


def affected_rows(table: Table, rows: str) -> str:
    """Return SQL for the cluster and `since_at` of each row of a bronze table that may change a reassignment.

    Both Spark and DuckDB can run it.
    """
    return f"SELECT cluster, {TIMES[table]} AS since_at FROM {rows} WHERE {OF_INTEREST[table]}"  # noqa: S608 - our own names


def cut(since: datetime, spans: Iterable[tuple[datetime, datetime | None]]) -> datetime:
    """Return the latest time at least `MARGIN` before `since` that is not near any reassignment in `spans`.

    `spans` are (start, end); an end of None means that the reassignment is in progress. Each span is extended by
    `MARGIN` on both sides.
    """
    at, left = since - MARGIN, list(spans)
    while straddling := [
        span for span in left if span[0] - MARGIN < at and (span[1] is None or span[1] + MARGIN >= at)
    ]:
        at = min(start for start, _ in straddling) - MARGIN
        left = [span for span in left if span not in straddling]
    return at


def since_cut(table: Table) -> str:
    """Return DuckDB's SQL for the rows of a bronze table from each cluster's cut on, and the last row of every
    partition before it.

    The view `cuts` has cluster and `cut_at`. Of the table, the columns that `reassignments_of_few` reads are returned.
    """
    time, columns = TIMES[table], ", ".join(("cluster", *COLUMNS[table]))
    chosen = f"FROM {table.name} JOIN cuts USING (cluster) WHERE {OF_INTEREST[table]}"
    return f"""
    SELECT {columns} {chosen} AND {time} >= cut_at UNION ALL BY NAME
    SELECT unnest(newest) FROM (
        SELECT arg_max({{{", ".join(f"'{name}': {name}" for name in ("cluster", *COLUMNS[table]))}}}, {time}) AS newest
        {chosen} AND {time} < cut_at GROUP BY cluster, {SUBJECTS[table]}
    )
    """  # noqa: S608 - our own names


def _struct(name: str, fields: Iterable[str], table: Table) -> Column:
    times = timestamp_columns(table)
    return F.struct(*(F.unix_millis(f).alias(f) if f in times else F.col(f) for f in fields)).alias(name)


def _rebuild(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for cluster, found in groupby(rows, key=lambda row: row["cluster"]):
        of_cluster = list(found)
        observations = [row["seen"] | {"body": json.loads(row["seen"]["body"])} for row in of_cluster if row["seen"]]
        lines = [row["line"] for row in of_cluster if row["line"]]
        yield from stored_batches(by_table(reassignment_rows(cluster, observations, lines)), REASSIGNMENT_TABLES)
