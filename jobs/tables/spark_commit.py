"""Commits that Spark makes to one table: statements of a caller, and rows that are deleted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.tables.paths import named_by_path, table_path
from jobs.tables.transactions import retry_commit
from schemas.tables import Table

T = TypeVar("T")

RECENT = 20
"""Newest commits among which a process looks for its own. Another process may have written others after it."""


def commit_by_spark(warehouse: Path, table: Table, act: Callable[[str], T]) -> T:
    """Run `act`, which gets the table's name in Spark's SQL and commits to it; return its result.

    It is run again if another commit came first, so it must read the table again at each call.

    Raises:
        Exception: one of `conflicts.CONFLICTS`, if other commits came first each time.
    """
    path = table_path(warehouse, table)
    return retry_commit(path, lambda: act(named_by_path(path)), alone=True)


def marked_version(spark: SparkSession, warehouse: Path, table: Table, mark: str) -> int:
    """Return the version of the recent commit that has the user metadata `mark`."""
    commits = spark.sql(f"DESCRIBE HISTORY {named_by_path(table_path(warehouse, table))} LIMIT {RECENT}")
    return int(commits.where(F.col("userMetadata") == mark).select("version").collect()[0][0])


def marked_ms(spark: SparkSession, warehouse: Path, table: Table) -> int:
    """Return the time in ms of the newest commit with user metadata; 0 if the table's log has none."""
    commits = spark.sql(f"DESCRIBE HISTORY {named_by_path(table_path(warehouse, table))}")
    newest = commits.where("userMetadata IS NOT NULL").agg(F.max(F.unix_millis("timestamp"))).collect()
    return int(newest[0][0] or 0)


def delete_rows(spark: SparkSession, warehouse: Path, table: Table, where: str = "true") -> int:
    """Delete the rows for which the SQL condition is true; return their number."""

    def delete(name: str) -> int:
        return int(spark.sql(f"DELETE FROM {name} WHERE {where}").collect()[0][0])  # noqa: S608 - callers quote

    return commit_by_spark(warehouse, table, delete)
