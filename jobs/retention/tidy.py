"""Compaction and removal of old files by Spark, for tables that only Spark finds."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.retention.compact import FEW_FILES
from jobs.tables.location import TableName
from jobs.tables.named_tables import properties
from schemas.thresholds import DAY_MS
from schemas.written import count

RETENTION, DEFAULT_DAYS = "delta.deletedFileRetentionDuration", 7
"""The table property for the time that VACUUM keeps files which no current version needs, and Delta's default."""

OPTIMIZED_BY_PLATFORM = re.compile(r"^ENABLE", re.IGNORECASE)
"""What Unity Catalog says about a table with predictive optimization: it compacts and vacuums such tables itself."""


def tidy(name: TableName, days: float, now_ms: int) -> list[str]:
    """Compact a table, and remove the files that no version of the last `days` days needs; return what was done.

    Nothing is done to a table that the platform optimizes by itself; its files are then kept as long as `days` says.
    """
    spark, done = SparkSession.active(), []
    kept = f"interval {round(days * 24)} hours"
    known = properties(name).get(RETENTION)
    if known != kept and not (known is None and days == DEFAULT_DAYS):
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{RETENTION}' = '{kept}')").collect()
        done.append(f"old files are now kept for {count(round(days * 24), 'hour')}")
    if _is_optimized_by_platform(name):
        return done
    if (before := size_of(name)[0]) > FEW_FILES:
        spark.sql(f"OPTIMIZE {name}").collect()
        if (after := size_of(name)[0]) != before:
            done.append(f"{count(before, 'file')} made into {after:,}")
    # Each takes seconds, and a table whose first commit is younger has no old files.
    if begun_ms(name) < now_ms - days * DAY_MS:
        spark.sql(f"VACUUM {name}").collect()
    return done


def begun_ms(name: TableName) -> int:
    """Return the time of the oldest commit in the table's log, in ms."""
    history = SparkSession.active().sql(f"DESCRIBE HISTORY {name}").agg(F.min(F.unix_millis("timestamp")))
    return int(history.collect()[0][0] or 0)


def size_of(name: TableName) -> tuple[int, int]:
    """Return the number of files and the bytes of the table's current version."""
    row = SparkSession.active().sql(f"DESCRIBE DETAIL {name}").select("numFiles", "sizeInBytes").collect()[0]
    return int(row[0]), int(row[1])


def _is_optimized_by_platform(name: TableName) -> bool:
    if name.address is not None:
        return False
    described = SparkSession.active().sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    found = {row["col_name"]: row["data_type"] or "" for row in described}
    return bool(OPTIMIZED_BY_PLATFORM.match(found.get("Predictive Optimization", "")))
