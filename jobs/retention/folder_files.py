"""Old and small files of tables in a folder. deltalake lists them."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.retention.compact import FEW_FILES, Made
from jobs.tables.paths import table_path
from jobs.tables.spark_commit import commit_by_spark
from schemas.tables import Table
from schemas.thresholds import DAY_MS


class Removed(NamedTuple):
    """Number and total bytes of removed files."""

    files: int
    size: int


def vacuum(warehouse: Path, table: Table, days: float) -> Removed:
    """Remove files that no table version of the last `days` days needs."""
    folder, youngest = Path(table_path(warehouse, table)), time.time() - days * DAY_MS / 1000
    # Spark's VACUUM takes seconds per table. deltalake's would write to the log of tables that deltalake cannot write,
    # so it only lists files here. A file without a log entry may belong to a commit in progress.
    listed = DeltaTable(str(folder)).vacuum(
        math.ceil(days * 24), dry_run=True, enforce_retention_duration=False, full=True
    )
    old = [path for name in listed if (path := folder / unquote(name)).is_file() and path.stat().st_mtime <= youngest]
    removed = Removed(len(old), sum(path.stat().st_size for path in old))
    for path in old:
        path.unlink()
    return removed


def optimized(spark: SparkSession, warehouse: Path, table: Table) -> Made:
    """Compact the table with Spark's OPTIMIZE.

    Delta clusters tables that have clustering columns, and otherwise fills files up.
    """
    path = table_path(warehouse, table)
    before = set(DeltaTable(path).file_uris())
    if len(before) <= FEW_FILES:
        return Made()
    commit_by_spark(warehouse, table, lambda name: spark.sql(f"OPTIMIZE {name}").collect())
    after = set(DeltaTable(path).file_uris())
    return Made(len(before - after), len(after - before))


def files_and_bytes(warehouse: Path, table: Table) -> tuple[int, int]:
    """Return the number of files and the bytes of the table's current version."""
    sizes = DeltaTable(table_path(warehouse, table)).get_add_actions(flatten=True)["size_bytes"].to_pylist()
    return len(sizes), sum(sizes)
