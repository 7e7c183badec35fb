"""The Spark function around `rows.reassignment_rows`: bronze in, one column of rows per table out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import reduce
from itertools import groupby
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.arrow_types import instants
from pipelines.reassignments.rows import KINDS, reassignment_rows
from pipelines.reassignments.statements import RULES_MS
from pipelines.rows_of_tables import by_table, ddl, stored_batches
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS
from schemas.silver import REASSIGNMENT_TABLES
from schemas.tables import Table

Since = Mapping[str, datetime]
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
LOGGED = [
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
]


def reassignments(observations: DataFrame, events: DataFrame) -> DataFrame:
    """Rebuild the reassignments of the clusters in `admin_observations` and `coordinator_events`.

    The rows of a cluster are all of its rows, or those that `since_cut` returns.

    Returns:
        One struct column per table, with that table's columns. Each row fills one of them; the others are NULL.
    """
    seen, line = _struct("seen", OBSERVED, ADMIN_OBSERVATIONS), _struct("line", LOGGED, COORDINATOR_EVENTS)
    polled = observations.where(OF_INTEREST[ADMIN_OBSERVATIONS]).select("cluster", seen)
    logged = events.where(OF_INTEREST[COORDINATOR_EVENTS]).select("cluster", line)
    both = polled.unionByName(logged, allowMissingColumns=True)
    ordered = both.repartition("cluster").sortWithinPartitions("cluster")
    return ordered.mapInArrow(_rebuild, ddl(REASSIGNMENT_TABLES))


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


def since_cut(rows: DataFrame, table: Table, cuts: Since) -> DataFrame:
    """Return the rows of a bronze table from each cluster's cut on, and the last row of every partition before it."""
    time, subject = TIMES[table], _topic() if table is ADMIN_OBSERVATIONS else _subject()
    after = reduce(or_, [(F.col("cluster") == name) & (F.col(time) >= at) for name, at in cuts.items()])
    before = rows.where(F.col("cluster").isin(*cuts) & ~after)
    newest = Window.partitionBy("cluster", *subject).orderBy(F.col(time).desc())
    last = (
        before.where(OF_INTEREST[table]).withColumn("_nth", F.row_number().over(newest)).where("_nth = 1").drop("_nth")
    )
    return rows.where(after).unionByName(last)


def _topic() -> list[Column]:
    return [F.col("kind"), F.get_json_object("body", "$.topic")]


def _subject() -> list[Column]:
    """Return the columns that identify a partition.

    A leader's line does not name the replicas, so the last line that names them is kept as well.
    """
    return [F.col("topic"), F.col("partition"), F.col("replicas").isNotNull()]


def _struct(name: str, fields: Iterable[str], table: Table) -> Column:
    times = instants(table)
    return F.struct(*(F.unix_millis(f).alias(f) if f in times else F.col(f) for f in fields)).alias(name)


def _rebuild(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    for cluster, found in groupby(rows, key=lambda row: row["cluster"]):
        of_cluster = list(found)
        observations = [row["seen"] | {"body": json.loads(row["seen"]["body"])} for row in of_cluster if row["seen"]]
        lines = [row["line"] for row in of_cluster if row["line"]]
        yield from stored_batches(by_table(reassignment_rows(cluster, observations, lines)), REASSIGNMENT_TABLES)
