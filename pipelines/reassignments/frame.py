"""Spark's shell around `rows.reassignment_rows`: bronze in, one column of rows per table out."""

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
"""Between what is rebuilt and what stays lies so much quiet that no statement of one bears on the other."""

TIMES = {ADMIN_OBSERVATIONS: "observed_at", COORDINATOR_EVENTS: "event_at"}
OF_INTEREST = {
    ADMIN_OBSERVATIONS: f"kind IN ({', '.join(repr(str(kind)) for kind in KINDS)})",
    COORDINATOR_EVENTS: "topic IS NOT NULL",
}
"""Which rows bear on a reassignment, in SQL that Spark and DuckDB both read."""

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
    """Rebuild the clusters whose `admin_observations` and `coordinator_events` are given, each whole or `since` a cut.

    Returns:
        One column per table, a struct of that table's columns; each row holds one of them, the rest are NULL.
    """
    seen, line = _struct("seen", OBSERVED, ADMIN_OBSERVATIONS), _struct("line", LOGGED, COORDINATOR_EVENTS)
    polled = observations.where(OF_INTEREST[ADMIN_OBSERVATIONS]).select("cluster", seen)
    logged = events.where(OF_INTEREST[COORDINATOR_EVENTS]).select("cluster", line)
    both = polled.unionByName(logged, allowMissingColumns=True)
    ordered = both.repartition("cluster").sortWithinPartitions("cluster")
    return ordered.mapInArrow(_rebuild, ddl(REASSIGNMENT_TABLES))


def touching(table: Table, rows: str) -> str:
    """Cluster and `since_at` of those of the `rows` of a bronze table that may change a reassignment, in SQL that Spark
    and DuckDB both read.
    """
    return f"SELECT cluster, {TIMES[table]} AS since_at FROM {rows} WHERE {OF_INTEREST[table]}"  # noqa: S608 - our own names


def cut(since: datetime, spans: Iterable[tuple[datetime, datetime | None]]) -> datetime:
    """The latest moment, well before `since`, at which none of the reassignments `spans` (start, end) was under way."""
    at, left = since - MARGIN, list(spans)
    while straddling := [
        span for span in left if span[0] - MARGIN < at and (span[1] is None or span[1] + MARGIN >= at)
    ]:
        at = min(start for start, _ in straddling) - MARGIN
        left = [span for span in left if span not in straddling]
    return at


def since_cut(rows: DataFrame, table: Table, cuts: Since) -> DataFrame:
    """The rows of a bronze table from each cluster's cut on, and the last word on every partition before it."""
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
    """A leader's line does not name the replicas, so the last one that does is kept beside it."""
    return [F.col("topic"), F.col("partition"), F.col("replicas").isNotNull()]


def _struct(name: str, fields: Iterable[str], table: Table) -> Column:
    times = instants(table)
    return F.struct(*(F.unix_millis(f).alias(f) if f in times else F.col(f) for f in fields)).alias(name)


def _rebuild(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in given for row in batch.to_pylist())
    for cluster, found in groupby(rows, key=lambda row: row["cluster"]):
        of_cluster = list(found)
        observations = [row["seen"] | {"body": json.loads(row["seen"]["body"])} for row in of_cluster if row["seen"]]
        lines = [row["line"] for row in of_cluster if row["line"]]
        yield from stored_batches(by_table(reassignment_rows(cluster, observations, lines)), REASSIGNMENT_TABLES)
