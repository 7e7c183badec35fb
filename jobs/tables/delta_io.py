"""Delta tables in a warehouse: reading and following them, and the folders beside them.

A warehouse is a folder. `<warehouse>/<table name>/` contains a table, unless the tables are elsewhere (`location`),
`<warehouse>/_checkpoints/<job>/` a stream's progress, and `<warehouse>/_clusters/<name>` the id of the Kafka cluster
with that name.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jobs.config.errors import UserError
from jobs.tables import named_tables
from jobs.tables.disk.durability import write_whole
from jobs.tables.paths import TableName, table_path
from schemas.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


WRITERS = 3
"""Tables written at the same time. A commit mostly waits, so this helps on two cores too."""


def checkpoint_path(warehouse: str | Path, job: str) -> Path:
    return Path(warehouse) / "_checkpoints" / job


def claim(warehouse: str | Path, cluster: str, cluster_id: str) -> None:
    """Bind the name `cluster` in this warehouse permanently to Kafka's own cluster id.

    Raises:
        UserError: the name is bound to another cluster.
    """
    marker = Path(warehouse) / "_clusters" / cluster
    known = marker.read_text(encoding="utf-8") if marker.exists() else ""
    if not known:
        # Also over an empty one, which an earlier version of Regroup left after a power loss.
        write_whole(marker, known := cluster_id)
    if known != cluster_id:
        raise UserError(
            f"In the warehouse {warehouse} the cluster name {cluster!r} stands for the Kafka cluster {known}, but the "
            f"brokers given belong to {cluster_id}: choose another --warehouse or another cluster name."
        )


def required(spark: SparkSession | None) -> SparkSession:
    """Return the session, for a table that only Spark can write.

    Raises:
        RuntimeError: there is none, although `create_tables.needs_spark` says that it is needed.
    """
    if spark is None:
        raise RuntimeError("A clustered table needs a Spark session.")
    return spark


def read(spark: SparkSession, warehouse: str | Path, table: Table, version: int | None = None) -> DataFrame:
    """Return the table in its newest version when rows are read, or in the given version."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return named_tables.frame(path, version, spark)
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(path)


def follow(spark: SparkSession, warehouse: str | Path, table: Table, version: int | None = None) -> DataFrame:
    """Return new rows of the table as a stream. Commits that delete or replace rows are skipped; they add none.

    A stream without a checkpoint begins with the rows that the commit of `version` added, or else with all rows.
    """
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return named_tables.follow(spark, path, version)
    stream = spark.readStream.format("delta").option("skipChangeCommits", "true")
    if version is not None:
        stream = stream.option("startingVersion", version)
    return stream.load(path)
