"""`regroup maintain`: delete expired rows, merge runs of commits and small files, and remove old files.

It may run at the same time as every other job: if two commits change the same rows, Delta lets one of them succeed. The
other is retried (`jobs.tables.conflicts`). If maintenance keeps losing, it is reported and left for the next run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.processes.process_lock import acquire
from jobs.processes.worker_process import WorkerProcess
from jobs.retention.compact import Made, compact, merged_file
from jobs.retention.folder_files import files_and_bytes, optimized, vacuum
from jobs.retention.merge_runs import merge_runs
from jobs.retention.retention import DAY_MS, expire, kept_days
from jobs.retention.tidy import size_of, tidy
from jobs.silver.staging import STAGING, empty
from jobs.spark.spark import session_of
from jobs.tables.conflicts import CONFLICTS
from jobs.tables.create_tables import needs_spark
from jobs.tables.location import is_elsewhere
from jobs.tables.silver_rows import current_files
from jobs.tables.spark_commit import marked_ms
from jobs.tables.table_facts import exists
from schemas import written
from schemas.bronze import BRONZE, OFFSET_COMMITS
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import Table
from schemas.written import count

TABLES = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD, *OPERATIONS)
LOCAL_DAYS = 0.25
"""Highest age of old files in local mode, in days: a batch leaves some in each table, 12,000 in an hour. The log covers
two hours. A file that waits for its commit counts as new then (`local_rewrite.commit`).
"""

STAGING_DAYS = 1.0
"""Days that rows and old files of the staging table are kept."""

MANY_FILES = 24
"""Number of files above which a table is compacted between two runs.

Each batch runs tens of queries, and each query opens all files: with 80 files, they took twice as long as with 20.
"""

Say = Callable[[str], None]
T = TypeVar("T")


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Maintain every table at intervals; with `--once`, only once.

    Raises:
        UserError: the warehouse has no tables, or another process maintains it.
    """
    if not existing_tables(settings.warehouse):
        raise UserError(
            f"The warehouse {settings.warehouse} has no tables yet: run `regroup ingest` or `regroup replay` "
            "first, or name another with --warehouse."
        )
    spark = session_of(settings, "maintain")
    with WorkerProcess(merged_file) as worker:
        maintenance = Maintenance(spark=spark, settings=settings, say=say, worker=worker)
        while True:
            with acquire(settings.warehouse, "maintain"):
                maintenance.round()
            if args.once:
                return 0
            time.sleep(settings.maintain_seconds)


def existing_tables(warehouse: Path, tables: Iterable[Table] = TABLES) -> list[Table]:
    """Return the tables that exist."""
    return [table for table in tables if exists(warehouse, table)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Maintenance of all tables of one warehouse. `say` gets one line per changed table, and one per failed step.

    While `building` is held, no other thread of this process changes silver. Silver's files are replaced under this
    lock, because two threads that change the same files would both repeat their work.
    """

    spark: SparkSession
    settings: Settings
    say: Say
    worker: WorkerProcess
    building: AbstractContextManager[object] = field(default_factory=nullcontext)

    def round(self, now_ms: int | None = None) -> None:
        """Delete, merge, compact and vacuum every existing table."""
        now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        done = [self._table(table, now_ms) for table in existing_tables(self.settings.warehouse, (*TABLES, STAGING))]
        self.say(f"{done.count(False)} tables are unchanged.")

    def keep_few(self) -> None:
        """Compact every table that has more than `MANY_FILES` files, without a report."""
        for table in existing_tables(self.settings.warehouse):
            if not self._is_by_spark(table) and len(current_files(self.settings.warehouse, table)) > MANY_FILES:
                with suppress(*CONFLICTS):
                    self._put_together(table)

    def _table(self, table: Table, now_ms: int) -> bool:
        """Maintain one table; return whether anything changed."""
        began, before = time.monotonic(), size(self.settings.warehouse, table)
        done = [*self._expired(table, now_ms), *self._merged(table, now_ms)]
        if is_elsewhere(self.settings.warehouse):
            done += self._try(table, "compacting", lambda: self._tidied(table, now_ms)) or []
        else:
            done += [*self._compacted(table), *self._vacuumed(table)]
        if done:
            took, now = time.monotonic() - began, size(self.settings.warehouse, table)
            self.say(f"{table.name}: {', '.join(done)}; {before} before, {now} now ({written.duration(1000 * took)})")
        return bool(done)

    def _is_by_spark(self, table: Table) -> bool:
        return needs_spark(self.settings.warehouse, (table,))

    def _tidied(self, table: Table, now_ms: int) -> list[str]:
        warehouse, days = self.settings.warehouse, spark_days(table, self.settings.vacuum_days)
        if table is not STAGING:
            return tidy(warehouse, table, days, now_ms)
        # A batch reads its rows once, so compacting them saves nothing. A day later no batch reads them any more.
        is_old = marked_ms(self.spark, warehouse, STAGING) < now_ms - STAGING_DAYS * DAY_MS
        rows = empty(self.spark, warehouse) if is_old else 0
        deleted = [f"{count(rows, 'row')} of an earlier batch deleted"] if rows else []
        return [*deleted, *tidy(warehouse, table, days, now_ms, compacts=False)]

    def _expired(self, table: Table, now_ms: int) -> list[str]:
        days = kept_days(self.settings).get(table, 0)
        if not days:
            return []
        warehouse = self.settings.warehouse
        rows = self._try(table, "deleting old rows", lambda: expire(self.spark, warehouse, table, days, now_ms))
        return [f"{count(rows, 'row')} older than {count(days, 'day')} deleted"] if rows else []

    def _merged(self, table: Table, now_ms: int) -> list[str]:
        if table is not OFFSET_COMMITS:
            return []
        warehouse = self.settings.warehouse
        found = self._try(table, "merging runs", lambda: merge_runs(self.spark, warehouse, now_ms=now_ms))
        return [f"{count(found[0], 'row')} merged into {found[1]:,}"] if found and found[0] > found[1] else []

    def _compacted(self, table: Table) -> list[str]:
        if not self._is_by_spark(table):
            made = self._try(table, "compacting", lambda: self._put_together(table))
        else:
            with self.building:
                made = self._try(table, "compacting", lambda: optimized(self.spark, self.settings.warehouse, table))
        return [f"{count(made.before, 'file')} made into {made.after:,}"] if made and made.before else []

    def _put_together(self, table: Table) -> Made:
        # Bronze needs no lock, because batches only append to it.
        building = nullcontext() if table.layer == "bronze" else self.building
        return compact(self.settings.warehouse, table, self.worker, building)

    def _vacuumed(self, table: Table) -> list[str]:
        days = self.settings.vacuum_days
        if not self._is_by_spark(table):
            # The Delta log of such a table covers only hours, so no reader can request files of an older version.
            days = min(days, LOCAL_DAYS)
        removed = vacuum(self.settings.warehouse, table, days)
        return [f"{count(removed.files, 'old file')} of {written.size(removed.size)} removed"] if removed.files else []

    def _try(self, table: Table, action: str, act: Callable[[], T]) -> T | None:
        try:
            return act()
        except CONFLICTS as error:
            lost = str(error).split("\n", 1)[0][:200]
            self.say(f"{table.name}: {action} is left for the next run, because other jobs wrote to the table: {lost}")
        return None


def spark_days(table: Table, days: float) -> float:
    """Return the days that old files of a table elsewhere are kept, if those of others are kept `days` days.

    Every large batch of `build` replaces the staging table, and nobody reads its older versions.
    """
    return min(days, STAGING_DAYS) if table is STAGING else days


def size(warehouse: Path, table: Table) -> str:
    """Return the number of files and the bytes of the table's current version, as text."""
    number, total = size_of(warehouse, table) if is_elsewhere(warehouse) else files_and_bytes(warehouse, table)
    return f"{count(number, 'file')} of {written.size(total)}"
