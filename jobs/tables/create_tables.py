"""Creates Delta tables from their definitions, with comments, NOT NULL keys and only basic reader features.

In local mode deltalake creates them in a hundredth of a second, where Spark takes a second each. In a folder without
hard links, such as a volume of Databricks, deltalake cannot write, so Spark creates the tables, and clusters them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
from deltalake import Field, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyspark.errors import AnalysisException

from jobs.tables import named_tables
from jobs.tables.catalog.checks import add_check
from jobs.tables.conflicts import CONFLICTS
from jobs.tables.delta_io import WRITERS, required
from jobs.tables.disk.hard_links import has_hard_links
from jobs.tables.disk.table_log import CHECKPOINT_COMMITS
from jobs.tables.location import is_elsewhere
from jobs.tables.paths import TableName, named_by_path, table_path
from jobs.tables.transactions import is_local, table_lock
from pipelines.arrow_types import schema_of
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY, Column, Table, schema_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_HOURS = 2
"""Hours that a local table's log keeps commits. A stream that was stopped for longer starts over (`checkpoint`)."""

TRIES = 4
"""Attempts to create a table that other processes may create at the same time."""

UNFINISHED_S = 10.0
"""Seconds after which a table without a first commit counts as abandoned. Creating one takes less."""

PROPERTIES = {
    # Readers without a JVM reject deletion vectors and v2 checkpoints, and silently read mapped columns as NULL.
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
    VERSION_PROPERTY: str(SCHEMA_VERSION),
}

LOCAL_PROPERTIES = {
    # Short, because a reader of the table reads each commit since the last checkpoint. deltalake's default is 100.
    "delta.checkpointInterval": f"{CHECKPOINT_COMMITS}",
    # Short, because opening a table and committing to it list its log: each takes 2 ms more per thousand commits.
    # Delta's default of 30 days would give half a million commits.
    "delta.logRetentionDuration": f"interval {LOG_HOURS} hours",
    "delta.deletedFileRetentionDuration": f"interval {LOG_HOURS} hours",
}
"""Properties of tables that deltalake writes (`transactions.is_local`)."""


def create_tables(
    spark: SparkSession | None, warehouse: str | Path, tables: Collection[Table], *, constrains: bool = True
) -> None:
    """Create the missing tables. Those that Spark writes are clustered as their definitions say, and those with names
    refuse rows with an estimate outside its bounds.

    A table of an earlier version of Regroup gets the missing columns, with NULL in its existing rows, and the missing
    constraint, unless one of its rows breaks it. With `constrains` off, no table gets a constraint. The session may be
    None unless `needs_spark`.

    Raises:
        UserError: a newer version of Regroup wrote a table.
    """
    by_spark = [table for table in tables if _is_by_spark(warehouse, table)]
    for table in tables:
        if table not in by_spark:
            create(warehouse, table)
    if not by_spark:
        return
    if is_elsewhere(warehouse):
        with ThreadPoolExecutor(WRITERS) as pool:
            names = [TableName(table_path(warehouse, table)) for table in by_spark]
            list(pool.map(lambda name, table: _ensure(name, table, constrains=constrains), names, by_spark))
        return
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda table: _create_by_spark(required(spark), table_path(warehouse, table), table), by_spark))


def _ensure(name: TableName, table: Table, *, constrains: bool) -> None:
    before = named_tables.ensure(name, table, PROPERTIES)
    if constrains and name.address is None:
        add_check(name, table, before)


def needs_spark(warehouse: str | Path, tables: Collection[Table]) -> bool:
    """Return whether Spark writes one of the tables, or will if it is missing."""
    return any(_is_by_spark(warehouse, table) for table in tables)


def _is_by_spark(warehouse: str | Path, table: Table) -> bool:
    """Return whether Spark writes the table, or will if it is missing. Earlier versions clustered all tables."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return True
    try:
        # Not `is_deltatable`, which lists the log, milliseconds for each table and batch.
        return not is_local(path)
    except (FileNotFoundError, TableNotFoundError):
        return not has_hard_links(Path(warehouse))


def create(warehouse: str | Path, table: Table) -> None:
    """Create the table with deltalake, unclustered, unless it exists. An older table gets the missing columns.

    Raises:
        UserError: a newer version of Regroup wrote it.
    """
    path = table_path(warehouse, table)
    if deltalake.DeltaTable.is_deltatable(path):
        _bring_up_to_date(path, table)
        return
    # Locked, because a second process would otherwise create the table again as its second version.
    with table_lock(path, alone=True):
        deltalake.DeltaTable.create(
            path,
            Schema(_fields(table, table.columns)),
            mode="ignore",
            description=table.comment,
            configuration=PROPERTIES | LOCAL_PROPERTIES,
            raise_if_key_not_exists=False,
        )


def _fields(table: Table, columns: Sequence[Column]) -> list[Field]:
    kinds = {field.name: field.type for field in Schema.from_arrow(schema_of(table)).fields}
    return [
        Field(c.name, kinds[c.name], nullable=c.name not in table.key, metadata={"comment": c.comment}) for c in columns
    ]


def _bring_up_to_date(path: str, table: Table) -> None:
    refuse_newer(path)
    stored = deltalake.DeltaTable(path)
    properties_now = stored.metadata().configuration
    properties = dict(LOCAL_PROPERTIES)
    if schema_version(properties_now) < SCHEMA_VERSION:
        # From now on, the table contains data that the earlier version could not write.
        properties[VERSION_PROPERTY] = str(SCHEMA_VERSION)
    if missing := named_tables.missing_columns(_names(stored), table):
        with table_lock(path, alone=True):
            stored.alter.add_columns(_fields(table, missing))
    if not properties.items() <= properties_now.items():
        with table_lock(path, alone=True):
            stored.alter.set_table_properties(properties, raise_if_not_exists=False)


def _names(stored: deltalake.DeltaTable) -> set[str]:
    return {field.name for field in stored.schema().fields}


def _create_by_spark(spark: SparkSession, path: str, table: Table) -> None:
    for left in reversed(range(TRIES)):
        if deltalake.DeltaTable.is_deltatable(path):
            refuse_newer(path)
            _bring_up_to_date_by_spark(spark, path, table)
            return
        _clear_unfinished(path)
        try:
            with table_lock(path, alone=True):
                spark.sql(named_tables.creation(named_by_path(path), table, PROPERTIES)).collect()
        except (*CONFLICTS, AnalysisException):
            # Without locks, another process may create the table at the same time. It then exists now or soon.
            if not left:
                raise
        else:
            return


def _bring_up_to_date_by_spark(spark: SparkSession, path: str, table: Table) -> None:
    stored = deltalake.DeltaTable(path)
    if missing := named_tables.missing_columns(_names(stored), table):
        added = ", ".join(map(named_tables.defined, missing))
        with table_lock(path, alone=True):
            spark.sql(f"ALTER TABLE {named_by_path(path)} ADD COLUMNS ({added})").collect()
    if schema_version(stored.metadata().configuration) < SCHEMA_VERSION:
        with table_lock(path, alone=True):
            statement = (
                f"ALTER TABLE {named_by_path(path)} SET TBLPROPERTIES ('{VERSION_PROPERTY}' = '{SCHEMA_VERSION}')"
            )
            spark.sql(statement).collect()


def _clear_unfinished(path: str) -> None:
    """Remove the log of a table whose creation was killed, because Delta cannot create or read a table over it.

    If another process is creating the table now, wait for it.
    """
    log = Path(path) / "_delta_log"
    while log.is_dir() and not deltalake.DeltaTable.is_deltatable(path):
        with suppress(FileNotFoundError):
            changed_at = max(each.stat().st_mtime for each in (log, *log.iterdir()))
            if time.time() - changed_at >= UNFINISHED_S:
                shutil.rmtree(log, ignore_errors=True)
                return
        time.sleep(0.2)


def refuse_newer_tables(warehouse: str | Path) -> None:
    """Raise `UserError` if a newer version of Regroup wrote any table of the warehouse."""
    for log in sorted(Path(warehouse).glob("*/_delta_log")):
        # Unfinished and torn tables are handled when they are created and read.
        with suppress(DeltaError):
            refuse_newer(str(log.parent))


def refuse_newer(path: str) -> None:
    """Raise `UserError` if a newer version of Regroup wrote the table at `path`."""
    # By deltalake in milliseconds; Spark's DESCRIBE DETAIL takes most of a second.
    named_tables.refuse_newer(path, schema_version(deltalake.DeltaTable(path).metadata().configuration))
