"""`regroup maintain`: what is kept no longer goes, runs of commits and small files are merged, old files are removed.

It may run beside every other job: of two commits that touch the same rows Delta lets one win. Where ours loses twice,
it says so and leaves that for the next time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import deltalake
from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
)
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from jobs.changed_rows import local
from jobs.delta_io import table_path
from jobs.errors import UserError
from jobs.merge_runs import merge_runs
from jobs.retention import DAY_MS, expire, kept_days
from jobs.settings import Settings
from jobs.spark import session
from schemas.bronze import BRONZE, OFFSET_COMMITS
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import Table

TABLES = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD, *OPERATIONS)
WEEK_DAYS = 7
FEW_FILES = 4
"""So many files are not worth merging."""

CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
)
"""What Delta raises where another commit was first; they have no common base."""

Say = Callable[[str], None]
T = TypeVar("T")


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Maintain every table, again and again; with `--once` once.

    Raises:
        UserError: there is nothing to maintain.
    """
    if not there(settings.warehouse):
        raise UserError(
            f"The warehouse {settings.warehouse} has no tables yet: run `./regroup ingest` or `./regroup replay` "
            "first, or name another with --warehouse."
        )
    spark = session("regroup maintain", cores=settings.cores, driver_memory=settings.driver_memory)
    while True:
        Maintenance(spark=spark, settings=settings, say=print).round()
        if args.once:
            return 0
        time.sleep(settings.maintain_seconds)


def there(warehouse: Path, tables: Iterable[Table] = TABLES) -> list[Table]:
    """Those of the tables that are there."""
    return [table for table in tables if deltalake.DeltaTable.is_deltatable(table_path(warehouse, table))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Of all tables of one warehouse; `say` is told what was done, one line a table, and what could not be done."""

    spark: SparkSession
    settings: Settings
    say: Say

    def round(self, now_ms: int | None = None) -> None:
        """Delete, merge, compact and vacuum every table that is there."""
        now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        for table in there(self.settings.warehouse):
            began, before = time.monotonic(), size(self.settings.warehouse, table)
            done = [*self._expired(table, now_ms), *self._merged(table, now_ms), *self._compacted(table)]
            done += self._vacuumed(table)
            after = size(self.settings.warehouse, table)
            if done:
                self.say(f"{table.name}: {'; '.join(done)}. {before} before, {after} now ({_seconds(began)})")

    def _expired(self, table: Table, now_ms: int) -> list[str]:
        days = kept_days(self.settings).get(table, 0)
        if not days:
            return []
        warehouse = self.settings.warehouse
        rows = self._try(table, "deleting old rows", lambda: expire(self.spark, warehouse, table, days, now_ms))
        return [f"{rows:,} rows older than {days} days deleted"] if rows else []

    def _merged(self, table: Table, now_ms: int) -> list[str]:
        if table is not OFFSET_COMMITS:
            return []
        warehouse = self.settings.warehouse
        found = self._try(table, "merging runs", lambda: merge_runs(self.spark, warehouse, now_ms=now_ms))
        return [f"{found[0]:,} runs merged into {found[1]:,}"] if found and found[0] > found[1] else []

    def _compacted(self, table: Table) -> list[str]:
        path = table_path(self.settings.warehouse, table)
        before = set(deltalake.DeltaTable(path).file_uris())
        if len(before) <= FEW_FILES:
            return []
        # With clustering columns, Delta clusters; without, it fills files up.
        self._try(table, "compacting", lambda: DeltaTable.forPath(self.spark, path).optimize().executeCompaction())
        gone = len(before - set(deltalake.DeltaTable(path).file_uris()))
        return [f"{gone:,} files made into fewer"] if gone else []

    def _vacuumed(self, table: Table) -> list[str]:
        removed = vacuum(self.spark, self.settings.warehouse, table, self.settings.vacuum_days)
        return [f"{removed:,} old files removed"] if removed else []

    def _try(self, table: Table, what: str, act: Callable[[], T]) -> T | None:
        for again in (True, False):
            try:
                return act()
            except CONFLICTS as error:
                if not again:
                    lost = str(error).split("\n", 1)[0][:200]
                    self.say(f"{table.name}: {what} waits for the next time, since other jobs wrote meanwhile: {lost}")
        return None


def vacuum(spark: SparkSession, warehouse: Path, table: Table, days: float) -> int:
    """Remove files that no version needs which is younger than so many days; returns how many went."""
    folder = Path(table_path(warehouse, table))
    before = _files(folder)
    standing = {Path(local(uri)).name for uri in deltalake.DeltaTable(str(folder)).file_uris()}
    youngest = time.time() - days * DAY_MS / 1000
    if not any(path.name not in standing and path.stat().st_mtime <= youngest for path in before):
        # Spark takes seconds to find nothing.
        return 0
    # Below a week Delta wants to be told that nobody reads or writes so old files.
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", str(days >= WEEK_DAYS).lower())
    DeltaTable.forPath(spark, str(folder)).vacuum(days * 24)
    return len(before - _files(folder))


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def size(warehouse: Path, table: Table) -> str:
    """Files and bytes of the table as it stands."""
    files = deltalake.DeltaTable(table_path(warehouse, table)).get_add_actions(flatten=True)
    sizes = files["size_bytes"].to_pylist()
    return f"{len(sizes):,} files of {sum(sizes) / 1e6:,.1f} MB"


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"
