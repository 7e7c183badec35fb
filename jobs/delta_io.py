"""Delta tables in a warehouse: created from their definitions, read and followed.

A warehouse is a folder (or a path Spark can write): `<warehouse>/<table name>/` holds a table,
`<warehouse>/_checkpoints/<job>/` a stream's progress, `<warehouse>/_clusters/<name>` the id of the Kafka cluster that
goes by that name.
"""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
from delta.tables import DeltaTable
from deltalake.exceptions import DeltaError

from jobs.conflicts import is_local, turn
from jobs.errors import UserError
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY, Column, Table, schema_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

WRITERS = 3
"""Tables written at once: a commit is mostly waiting, on two cores too."""

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


def table_path(warehouse: str | Path, table: Table) -> str:
    return f"{warehouse}/{table.name}"


def checkpoint_path(warehouse: str | Path, job: str) -> Path:
    return Path(warehouse) / "_checkpoints" / job


def claim(warehouse: str | Path, cluster: str, cluster_id: str) -> None:
    """Bind the name `cluster` in this warehouse to Kafka's own cluster id, for good.

    Raises:
        UserError: the name stands for another cluster's data.
    """
    marker = Path(warehouse) / "_clusters" / cluster
    marker.parent.mkdir(parents=True, exist_ok=True)
    if not marker.exists():
        # Half a marker would name another cluster.
        whole = marker.with_name(f"{cluster}.{os.getpid()}.tmp")
        whole.write_text(cluster_id, encoding="utf-8")
        whole.replace(marker)
    if (known := marker.read_text(encoding="utf-8")) != cluster_id:
        raise UserError(
            f"In the warehouse {warehouse} the cluster name {cluster!r} stands for the Kafka cluster {known}, but the "
            f"brokers given belong to {cluster_id}: choose another --warehouse or another cluster name."
        )


def create_tables(spark: SparkSession, warehouse: str | Path, tables: Iterable[Table]) -> None:
    """Create the tables that are not there yet, with comments, NOT NULL keys, clustering and plain reader features.

    A table of an earlier Regroup gets the columns it lacks; their values are NULL in the rows it has.

    Raises:
        UserError: a table was written by a newer Regroup.
    """
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda table: _create(spark, table_path(warehouse, table), table), tables))


def _create(spark: SparkSession, path: str, table: Table) -> None:
    if deltalake.DeltaTable.is_deltatable(path):
        refuse_newer(path)
        _bring_up_to_date(spark, path, table)
        return
    _clear_unfinished(path)
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(table.comment)
    for column in table.columns:
        builder = builder.addColumn(
            column.name, column.type, nullable=column.name not in table.key, comment=column.comment
        )
    is_here = "DATABRICKS_RUNTIME_VERSION" not in os.environ
    for key, value in (PROPERTIES | LOCAL_PROPERTIES if is_here else PROPERTIES).items():
        builder = builder.property(key, value)
    # deltalake cannot write clustered tables.
    is_clustered = table.cluster_by and not is_here
    (builder.clusterBy(*table.cluster_by) if is_clustered else builder).execute()


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


def missing_columns(stored: deltalake.DeltaTable, table: Table) -> list[Column]:
    """Those that a table of an earlier Regroup lacks."""
    known = {found.name for found in stored.schema().fields}
    return [column for column in table.columns if column.name not in known]


def _bring_up_to_date(spark: SparkSession, path: str, table: Table) -> None:
    stored = deltalake.DeltaTable(path)
    if is_local(path) and not LOCAL_PROPERTIES.items() <= stored.metadata().configuration.items():
        with turn(path, alone=True):
            stored.alter.set_table_properties(dict(LOCAL_PROPERTIES))
    if missing := missing_columns(stored, table):
        names = ", ".join(column.name for column in missing)
        print(f"The table {table.name} is of an earlier Regroup and gains the columns {names}.", flush=True)
        comments = [c.comment.replace("'", "\\'") for c in missing]
        added = ", ".join(f"`{c.name}` {c.type} COMMENT '{text}'" for c, text in zip(missing, comments, strict=True))
        with turn(path, alone=True):
            spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS ({added})")
    if schema_version(stored.metadata().configuration) < SCHEMA_VERSION:
        # From now on it holds what the earlier Regroup could not write.
        with turn(path, alone=True):
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{VERSION_PROPERTY}' = '{SCHEMA_VERSION}')")


def read(spark: SparkSession, warehouse: str | Path, table: Table, version: int | None = None) -> DataFrame:
    """The table as it stands whenever rows are asked for, or as it was in that version."""
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(table_path(warehouse, table))


def follow(spark: SparkSession, warehouse: str | Path, table: Table) -> DataFrame:
    """What the table gains, as a stream; commits that delete or replace rows bring nothing new and are skipped."""
    stream = spark.readStream.format("delta").option("skipChangeCommits", "true")
    return stream.load(table_path(warehouse, table))
