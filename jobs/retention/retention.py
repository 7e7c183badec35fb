"""Retention of rows, and the rows that a rebuild keeps because their bronze is deleted.

`coordinator_records` are never deleted: they are few, and all numbers of a group count from its first record. Commits
and log lines only make the results more precise. So after they are deleted, silver rows that were over before are
better than rebuilt ones, and are kept. `<warehouse>/_kept/<table>` contains the time from which a table still has its
rows.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.settings import Settings
from jobs.tables.delta_io import read
from jobs.tables.disk.durability import write_whole
from jobs.tables.engine import connect, quoted
from jobs.tables.location import is_elsewhere
from jobs.tables.silver_rows import dataset
from jobs.tables.spark_commit import delete_rows
from schemas.bronze import ADMIN_OBSERVATIONS, CLIENT_METRICS, COORDINATOR_EVENTS, OFFSET_COMMITS, QUARANTINE
from schemas.operations import JOB_RUNS, LIMITS_REACHED, OPERATIONS, QUALITY_RESULTS
from schemas.silver import (
    GENERATION_MEMBERS,
    GENERATIONS,
    GROUP_EVENTS,
    GROUPS,
    REASSIGNMENT_SAMPLES,
    REASSIGNMENTS,
    REBALANCES,
    RESUME_POINTS,
    SILVER,
    STALLS,
)
from schemas.tables import Table

DAY_MS = 86_400_000
TIMES = {
    OFFSET_COMMITS: "last_commit_at",
    COORDINATOR_EVENTS: "event_at",
    ADMIN_OBSERVATIONS: "observed_at",
    CLIENT_METRICS: "received_at",
    QUARANTINE: "record_at",
    JOB_RUNS: "told_at",
    QUALITY_RESULTS: "checked_at",
    LIMITS_REACHED: "reached_at",
    RESUME_POINTS: "settled_at",
}
"""Tables whose rows expire, with the deciding time column. A row without that time is kept."""

POINT_DAYS = 1
"""Days for which resume points are kept. Input that is later still is built from an earlier point: slower, not worse.
"""

OVER = {
    GENERATIONS: "CASE WHEN outcome <> 'open' THEN coalesce(completed_at, joined_at) END",
    GENERATION_MEMBERS: "valid_to_at",
    STALLS: "resumed_at_latest",
    GROUP_EVENTS: "event_at",
    GROUPS: "last_record_at",
    REBALANCES: "ended_at",
    RESUME_POINTS: "CAST(NULL AS TIMESTAMP)",
    REASSIGNMENTS: "completed_at",
    REASSIGNMENT_SAMPLES: "observed_at",
}
"""SQL, for Spark and DuckDB, for the time after which a row no longer changes; NULL while it still may."""


def kept_days(settings: Settings) -> dict[Table, int]:
    """Return the days that each table keeps its rows; 0 means forever."""
    rest = (COORDINATOR_EVENTS, ADMIN_OBSERVATIONS, CLIENT_METRICS, QUARANTINE)
    operations = dict.fromkeys(OPERATIONS, settings.keep_operations_days)
    known = {OFFSET_COMMITS: settings.keep_commits_days, RESUME_POINTS: POINT_DAYS}
    return known | dict.fromkeys(rest, settings.keep_bronze_days) | operations


def begin(days: int, now_ms: int) -> int:
    """Return the UTC midnight in ms before which rows expire."""
    return (now_ms - days * DAY_MS) // DAY_MS * DAY_MS


def expire(spark: SparkSession, warehouse: Path, table: Table, days: int, now_ms: int) -> int:
    """Delete the rows of a table older than `days` days; return their number."""
    since = begin(days, now_ms)
    old = f"{TIMES[table]} < timestamp_millis({since:d})"
    if is_elsewhere(warehouse):
        rows = read(spark, warehouse, table).where(old).count()
    else:
        rows = dataset(warehouse, table).count_rows(filter=pc.field(TIMES[table]) < pa.scalar(_instant(since)))
    if rows:
        # Noted first, because a rebuild between the two would otherwise treat the remaining rows as complete.
        _note(warehouse, table, since)
        delete_rows(spark, warehouse, table, old)
    return rows


def _note(warehouse: Path, table: Table, since: int) -> None:
    path = warehouse / "_kept" / table.name
    known = kept_since(warehouse, table)
    write_whole(path, str(max(since, known or since)))


def kept_since(warehouse: Path, *tables: Table) -> int | None:
    """Return the time in ms from which all of these tables still have their rows; None if nothing was ever deleted."""
    found = []
    for table in tables:
        with suppress(FileNotFoundError):
            found.append(int((warehouse / "_kept" / table.name).read_text(encoding="utf-8")))
    return max(found, default=None)


def settled_since(warehouse: Path, table: Table) -> int | None:
    """Return the time in ms before which finished rows of a silver table are kept, because their bronze is incomplete.

    None if nothing was ever deleted.
    """
    # Polls name the topics of silver whose records have only ids.
    commits = (OFFSET_COMMITS,) if table in SILVER else ()
    since = kept_since(warehouse, ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, *commits)
    # One day more, because a row begins before it is over, and its earliest bounds are from before it began.
    return None if since is None else since + DAY_MS


def has_settled(warehouse: Path) -> bool:
    """Return whether silver may have rows that a rebuild must keep."""
    return settled_since(warehouse, GROUPS) is not None


def with_settled(spark: SparkSession, warehouse: Path, rows: DataFrame, table: Table) -> DataFrame:
    """Return the rows of a rebuild from all of bronze, together with the kept rows from before."""
    since = settled_since(warehouse, table)
    if since is None:
        return rows
    stored = read(spark, warehouse, table).select(*table.names)
    _, may = unsettled_frames(warehouse, stored, rows, table)
    return may.unionByName(stored.where(_is_over(table, since)))


def unsettled_frames(warehouse: Path, old: DataFrame, new: DataFrame, table: Table) -> tuple[DataFrame, DataFrame]:
    """Return what `unsettled` returns, as frames."""
    since = settled_since(warehouse, table)
    if since is None:
        return old, new
    is_over, owner = _is_over(table, since), _owner(table)
    settled = old.where(is_over)
    beyond = new.where(~is_over).join(settled.select(*table.key), list(table.key), "left_anti")
    unknown = new.where(is_over).join(settled.select(*owner).distinct(), owner, "left_anti")
    return old.where(~is_over), beyond.select(*table.names).unionByName(unknown.select(*table.names))


def _is_over(table: Table, since: int) -> Column:
    return F.coalesce(F.expr(OVER[table]) < F.lit(_instant(since)), F.lit(False))  # noqa: FBT003 - a literal


def unsettled(warehouse: Path, old: pa.Table, new: pa.Table, table: Table) -> tuple[pa.Table, pa.Table]:
    """Return the old rows that a rebuild may replace, and the new rows that it may write."""
    since = settled_since(warehouse, table)
    if since is None:
        return old, new
    owner, key = quoted(_owner(table)), quoted(table.key)
    is_over = f"coalesce(({OVER[table]}) < '{_instant(since).isoformat()}'::TIMESTAMPTZ, false)"
    with connect() as engine:
        engine.register("old_rows", old)
        engine.register("new_rows", new)
        settled = f"(SELECT * FROM old_rows WHERE {is_over})"  # noqa: S608 - our own names
        may = f"SELECT * FROM old_rows WHERE NOT {is_over}"  # noqa: S608
        come = (
            "SELECT * FROM new_rows "  # noqa: S608
            f"WHERE CASE WHEN {is_over} THEN ({owner}) NOT IN (SELECT ({owner}) FROM {settled}) "
            f"ELSE ({key}) NOT IN (SELECT ({key}) FROM {settled}) END"
        )
        return tuple(engine.sql(q).to_arrow_table().cast(side.schema) for q, side in ((may, old), (come, new)))


def _owner(table: Table) -> list[str]:
    return list(table.key[:2]) if table in SILVER else ["cluster"]


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)
