"""Delta tables made from their definitions, with comments, NOT NULL keys and plain reader features.

On a machine of one's own deltalake makes them, in a hundredth of the second that Spark takes for each; on Databricks
they are clustered, which only Spark writes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
from deltalake import Field, Schema
from deltalake.exceptions import DeltaError

from jobs.config.errors import UserError
from jobs.config.terminal import say
from jobs.tables.delta_io import WRITERS, table_path
from jobs.tables.transactions import is_local, table_lock
from pipelines.arrow_types import schema_of
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY, Column, Table, schema_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_HOURS = 2
"""So long the log of a local table keeps commits. A stream that was stopped for longer starts over (`checkpoint`)."""

UNFINISHED_S = 10.0
"""Nobody takes so long between beginning to make a table and its first commit."""

PROPERTIES = {
    # Readers without a JVM refuse deletion vectors and v2 checkpoints and read mapped columns as NULL, silently.
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
    VERSION_PROPERTY: str(SCHEMA_VERSION),
}

LOCAL_PROPERTIES = {
    # Who opens a table reads each commit since its last checkpoint: deltalake would make one in a hundred commits.
    "delta.checkpointInterval": "10",
    # Who opens a table lists its log, which takes 6 ms for a thousand commits, and a batch opens tables 40 times. Of
    # 30 days of commits, Delta's default, there would be half a million.
    "delta.logRetentionDuration": f"interval {LOG_HOURS} hours",
    "delta.deletedFileRetentionDuration": f"interval {LOG_HOURS} hours",
}
"""Those of tables that deltalake writes (`conflicts.is_local`)."""


def create_tables(spark: SparkSession, warehouse: str | Path, tables: Collection[Table]) -> None:
    """Create the tables that are not there yet; on Databricks clustered where they say by what.

    A table of an earlier Regroup gets the columns it lacks; their values are NULL in the rows it has.

    Raises:
        UserError: a table was written by a newer Regroup.
    """
    clustered = [table for table in tables if _is_clustered(table_path(warehouse, table), table)]
    for table in tables:
        if table not in clustered:
            create(warehouse, table)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda table: _create_by_spark(spark, table_path(warehouse, table), table), clustered))


def _is_clustered(path: str, table: Table) -> bool:
    """As it is, or as it is made here. An earlier Regroup clustered everywhere."""
    if deltalake.DeltaTable.is_deltatable(path):
        return not is_local(path)
    return bool(table.cluster_by) and "DATABRICKS_RUNTIME_VERSION" in os.environ


def create(warehouse: str | Path, table: Table) -> None:
    """Make the table by deltalake, not clustered, unless it is there; one of an earlier Regroup gets the columns it
    lacks.

    Raises:
        UserError: it was written by a newer Regroup.
    """
    path = table_path(warehouse, table)
    if deltalake.DeltaTable.is_deltatable(path):
        _bring_up_to_date(path, table)
        return
    # Without a turn, who makes it at the same instant would make it anew as the second version.
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
    told = stored.metadata().configuration
    properties = dict(LOCAL_PROPERTIES)
    if schema_version(told) < SCHEMA_VERSION:
        # From now on it holds what the earlier Regroup could not write.
        properties[VERSION_PROPERTY] = str(SCHEMA_VERSION)
    if missing := _missing_columns(stored, table):
        with table_lock(path, alone=True):
            stored.alter.add_columns(_fields(table, missing))
    if not properties.items() <= told.items():
        with table_lock(path, alone=True):
            stored.alter.set_table_properties(properties, raise_if_not_exists=False)


def _missing_columns(stored: deltalake.DeltaTable, table: Table) -> list[Column]:
    """Those that a table of an earlier Regroup lacks, told in a line."""
    known = {found.name for found in stored.schema().fields}
    missing = [column for column in table.columns if column.name not in known]
    if missing:
        names = ", ".join(column.name for column in missing)
        say(f"The table {table.name} is of an earlier Regroup and gains the columns {names}.")
    return missing


def _create_by_spark(spark: SparkSession, path: str, table: Table) -> None:
    from delta.tables import DeltaTable  # noqa: PLC0415 - a second of imports

    if deltalake.DeltaTable.is_deltatable(path):
        refuse_newer(path)
        _bring_up_to_date_by_spark(spark, path, table)
        return
    _clear_unfinished(path)
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(table.comment)
    for column in table.columns:
        builder = builder.addColumn(
            column.name, column.type, nullable=column.name not in table.key, comment=column.comment
        )
    for key, value in PROPERTIES.items():
        builder = builder.property(key, value)
    builder.clusterBy(*table.cluster_by).execute()


def _bring_up_to_date_by_spark(spark: SparkSession, path: str, table: Table) -> None:
    stored = deltalake.DeltaTable(path)
    if missing := _missing_columns(stored, table):
        comments = [c.comment.replace("'", "\\'") for c in missing]
        added = ", ".join(f"`{c.name}` {c.type} COMMENT '{text}'" for c, text in zip(missing, comments, strict=True))
        with table_lock(path, alone=True):
            spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({added})")
    if schema_version(stored.metadata().configuration) < SCHEMA_VERSION:
        with table_lock(path, alone=True):
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{VERSION_PROPERTY}' = '{SCHEMA_VERSION}')")


def _clear_unfinished(path: str) -> None:
    """What a process left that was killed while it made the table: Delta neither makes nor reads one over it.

    Somebody who makes it just now is waited for.
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
    """Raises `UserError` where any table of the warehouse was written by a newer Regroup."""
    for log in sorted(Path(warehouse).glob("*/_delta_log")):
        # Half-made and torn tables are a matter for who makes and reads them.
        with suppress(DeltaError):
            refuse_newer(str(log.parent))


def refuse_newer(path: str) -> None:
    """Raises `UserError` where the table at `path` was written by a newer Regroup."""
    # deltalake answers in milliseconds what Spark's DESCRIBE DETAIL takes most of a second for.
    found = schema_version(deltalake.DeltaTable(path).metadata().configuration)
    if found > SCHEMA_VERSION:
        raise UserError(
            f"The table {path} has schema version {found}, written by a newer Regroup than this one (which knows "
            f"{SCHEMA_VERSION}): update Regroup, or choose another --warehouse."
        )
