"""Compaction and removal of old files by Spark, for tables that only Spark can find."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.retention.compact import FEW_FILES
from jobs.tables.named_tables import commits_after, properties, version
from jobs.tables.paths import TableName, named_by_path, table_path
from schemas.tables import Table
from schemas.thresholds import DAY_MS
from schemas.written import count

RETENTION, DEFAULT_DAYS = "delta.deletedFileRetentionDuration", 7
"""The table property for the time that VACUUM keeps files which no current version needs, and Delta's default."""

OPTIMIZED_BY_PLATFORM = re.compile(r"^ENABLE", re.IGNORECASE)
"""What Unity Catalog says about a table with predictive optimization: it compacts and vacuums such tables itself."""

VECTORS = "deletionVectors"
"""The feature of tables in which a deleted row may stay in its file, marked as deleted."""

VACUUMED = "VACUUM END"
"""The operation of the commit after VACUUM, which Delta makes only where its log is cheap to write."""


def tidy(warehouse: Path, table: Table, days: float, now_ms: int, *, compacts: bool = True) -> list[str]:
    """Compact a table, and remove the files that no version of the last `days` days needs; return what was done.

    Nothing is done to a table that the platform optimizes by itself; its files are then kept as long as `days` says.
    """
    name, done = _name(warehouse, table), []
    if _keep_old_files(name, days):
        done.append(f"old files are now kept for {count(round(days * 24), 'hour')}")
    if _is_optimized_by_platform(name):
        return done
    if compacts and (before := _size(name)[0]) > FEW_FILES:
        _run(f"OPTIMIZE {name}")
        if (after := _size(name)[0]) != before:
            done.append(f"{count(before, 'file')} made into {after:,}")
    if _may_have_old_files(name, days, now_ms):
        _run(f"VACUUM {name}")
    return done


def remove_old_files(warehouse: Path, table: Table, days: float, now_ms: int) -> int | None:
    """Remove the files that no version of the last `days` days needs, and rewrite those with rows that are only marked
    as deleted. Return the number of removed files; None if the table's log does not tell it.

    After `days` = 0, the table keeps old files as long as before, so that later readers can finish; for Delta's default
    time if it kept none.

    Raises:
        PySparkException: Spark refused it.
    """
    name = _name(warehouse, table)
    if VECTORS in (_detail(name, "tableFeatures")[0] or ()):
        _run(f"REORG TABLE {name} APPLY (PURGE)")
    known = properties(name).get(RETENTION)
    # The property decides, because not every session may turn off the check of the hours that VACUUM is given.
    _keep_old_files(name, days)
    try:
        return _vacuumed(name) if _may_have_old_files(name, days, now_ms) else 0
    finally:
        if not days:
            _set_retention(name, None if known == _kept(0) else known)


def _vacuumed(name: TableName) -> int | None:
    before = version(name)
    _run(f"VACUUM {name}")
    ended = (commit["operationMetrics"] for commit in commits_after(name, before) if commit["operation"] == VACUUMED)
    return next((int(metrics.get("numDeletedFiles", 0)) for metrics in ended), None)


def begun_ms(name: TableName) -> int:
    """Return the time of the oldest commit in the table's log, in ms."""
    history = SparkSession.active().sql(f"DESCRIBE HISTORY {name}").agg(F.min(F.unix_millis("timestamp")))
    return int(history.collect()[0][0] or 0)


def size_of(warehouse: Path, table: Table) -> tuple[int, int]:
    """Return the number of files and the bytes of the table's current version."""
    return _size(_name(warehouse, table))


def _name(warehouse: Path, table: Table) -> TableName:
    return named_by_path(table_path(warehouse, table))


def _size(name: TableName) -> tuple[int, int]:
    files, size = _detail(name, "numFiles", "sizeInBytes")
    return int(files), int(size)


def _keep_old_files(name: TableName, days: float) -> bool:
    """Set for how long VACUUM keeps files that no current version needs; return whether that changed."""
    kept, known = _kept(days), properties(name).get(RETENTION)
    if known == kept or (known is None and days == DEFAULT_DAYS):
        return False
    _set_retention(name, kept)
    return True


def _set_retention(name: TableName, kept: str | None) -> None:
    """Set the property for the time that VACUUM keeps old files; None removes it."""
    if kept is None:
        _run(f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ('{RETENTION}')")
    else:
        _run(f"ALTER TABLE {name} SET TBLPROPERTIES ('{RETENTION}' = '{kept}')")


def _kept(days: float) -> str:
    return f"interval {round(days * 24)} hours"


def _may_have_old_files(name: TableName, days: float, now_ms: int) -> bool:
    """Return whether VACUUM, which takes seconds, may find files: not if the first commit is younger than `days`."""
    return begun_ms(name) < now_ms - days * DAY_MS


def _detail(name: TableName, *columns: str) -> Row:
    return SparkSession.active().sql(f"DESCRIBE DETAIL {name}").select(*columns).collect()[0]


def _run(statement: str) -> None:
    SparkSession.active().sql(statement).collect()


def _is_optimized_by_platform(name: TableName) -> bool:
    if name.address is not None:
        return False
    described = SparkSession.active().sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    found = {row["col_name"]: row["data_type"] or "" for row in described}
    return bool(OPTIMIZED_BY_PLATFORM.match(found.get("Predictive Optimization", "")))
