"""Compaction and removal of old files by Spark, for tables that only Spark finds."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from jobs.tables.location import TableName
from jobs.tables.named_tables import properties
from schemas.written import count

RETENTION = "delta.deletedFileRetentionDuration"
"""The table property for the time that VACUUM keeps files which no current version needs. Delta's default is a week."""

OPTIMIZED_BY_PLATFORM = re.compile(r"^ENABLE", re.IGNORECASE)
"""What Unity Catalog says about a table with predictive optimization: it compacts and vacuums such tables itself."""


def tidy(name: TableName, days: float) -> list[str]:
    """Compact a table, and remove the files that no version of the last `days` days needs; return what was done.

    Nothing is done to a table that the platform optimizes by itself; its files are then kept as long as `days` says.
    """
    spark, hours = SparkSession.active(), round(days * 24)
    done = []
    if properties(name).get(RETENTION) != f"interval {hours} hours":
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{RETENTION}' = 'interval {hours} hours')").collect()
        done.append(f"old files are kept for {count(hours, 'hour')}")
    if _is_optimized_by_platform(name):
        return done
    before, _ = size_of(name)
    spark.sql(f"OPTIMIZE {name}").collect()
    after, _ = size_of(name)
    if after != before:
        done.append(f"{count(before, 'file')} made into {after:,}")
    spark.sql(f"VACUUM {name}").collect()
    return done


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
