"""The tables of one warehouse, and the engine that writes them: deltalake, or Spark where deltalake cannot commit.

Only rows that one process can hold go through here, such as runs, results of checks and alerts. They are written
without Spark where possible, because a second for Spark's commit would delay every page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from jobs.tables.append import append_frame
from jobs.tables.create_tables import create, create_tables
from jobs.tables.disk.full_disk import refuse_full
from jobs.tables.disk.hard_links import has_hard_links
from jobs.tables.location import is_elsewhere
from jobs.tables.paths import table_path
from jobs.tables.spark_commit import commit_by_spark
from jobs.tables.transactions import table_lock
from pipelines.arrow_types import stored
from schemas.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = Sequence[Mapping[str, Any]]
"""Rows by column, with timestamps in ms."""

MOST_FILES = 100
"""Number of files above which `FolderTables` compacts a table. Each append adds one file."""

TRIES = 4
KEPT_HOURS = 1
"""Hours that compacted files are kept, because readers may still use them."""


class Tables(Protocol):
    """The tables of one warehouse. Several processes may append and merge at the same time."""

    @property
    def warehouse(self) -> Path: ...

    def ensure(self, table: Table) -> None:
        """Create the table unless it exists, and add the columns that an older one lacks.

        Raises:
            UserError: a newer version of Regroup wrote the table.
        """

    def append(self, table: Table, rows: Rows) -> None:
        """Append rows in one commit. Create the table if it is missing.

        Raises:
            UserError: a newer version of Regroup wrote the table.
            OSError: the disk is full.
        """

    def merge(self, table: Table, rows: Rows) -> None:
        """Replace the rows that have the key of one of these, and add the others, in one commit.

        Keys are unique in `rows`, and the table exists.
        """


def tables_at(warehouse: Path, start: Callable[[], SparkSession]) -> Tables:
    """Return the tables of a warehouse. `start` starts the session that some addresses need, and is only called then.

    The place decides: tables in a folder whose file system has hard links are written by deltalake, others by Spark.
    """
    is_local = not is_elsewhere(warehouse) and has_hard_links(warehouse)
    return FolderTables(warehouse) if is_local else SparkTables(warehouse, start())


@dataclass(frozen=True, slots=True)
class FolderTables:
    """Tables in a folder, written by deltalake without Spark. They are not clustered, because it cannot write those."""

    warehouse: Path

    def ensure(self, table: Table) -> None:
        create(self.warehouse, table)

    def append(self, table: Table, rows: Rows) -> None:
        refuse_full(self.warehouse)
        path, new = table_path(self.warehouse, table), stored(rows, table)
        for left in reversed(range(TRIES)):
            try:
                create(self.warehouse, table)
                write_deltalake(path, new, mode="append")
                break
            except DeltaError:
                # Another process may have just created the table. Otherwise the last try raises the error.
                if not left:
                    raise
        if len(DeltaTable(path).file_uris()) > MOST_FILES:
            # Only one at a time, because deltalake lets two compactions of the same files succeed and then duplicates
            # their rows.
            with table_lock(path, alone=True), suppress(DeltaError):
                written = DeltaTable(path)
                written.optimize.compact()
                written.vacuum(KEPT_HOURS, dry_run=False, enforce_retention_duration=False)

    def merge(self, table: Table, rows: Rows) -> None:
        (
            DeltaTable(table_path(self.warehouse, table))
            .merge(stored(rows, table), _same_key(table), source_alias="new", target_alias="old")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )


@dataclass(frozen=True, slots=True)
class SparkTables:
    """Tables that Spark writes, through its session. `maintain` compacts them."""

    warehouse: Path
    spark: SparkSession

    def ensure(self, table: Table) -> None:
        _in_a_thread(lambda: create_tables(self.spark, self.warehouse, [table]))

    def append(self, table: Table, rows: Rows) -> None:
        refuse_full(self.warehouse)
        self.ensure(table)
        _in_a_thread(lambda: append_frame(self._frame(table, rows), self.warehouse, table))

    def merge(self, table: Table, rows: Rows) -> None:
        def merge(name: str) -> None:
            # Doubled, because braces are parameters.
            target = re.sub("([{}])", r"\1\1", name)
            statement = (
                f"MERGE INTO {target} AS old USING {{new}} AS new ON {_same_key(table)} "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
            self.spark.sql(statement, new=self._frame(table, rows)).collect()

        _in_a_thread(lambda: commit_by_spark(self.warehouse, table, merge))

    def _frame(self, table: Table, rows: Rows) -> DataFrame:
        return self.spark.createDataFrame(stored(rows, table)).coalesce(1)


def _in_a_thread(act: Callable[[], object]) -> None:
    """Run `act` in a separate thread, and raise its exception.

    A signal handler may write while this thread waits for an answer of the JVM, and each thread has one connection.
    """
    with ThreadPoolExecutor(1) as pool:
        pool.submit(act).result()


def _same_key(table: Table) -> str:
    return " AND ".join(f"old.{name} = new.{name}" for name in table.key)
