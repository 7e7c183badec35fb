"""Tables that Spark finds by name (`location.TableName`): creation, facts, reading and writing, all through SQL.

The session is the active one of this process. This process reads rows through Spark too, because nothing else may read
the files of a managed table of Unity Catalog.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from dashboards.lake.sql_names import ABSENT, NO_SCHEMA, literal
from jobs.config.errors import UserError
from jobs.config.terminal import say
from pipelines.arrow_types import schema_of
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY, Column, Table, schema_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from jobs.tables.paths import TableName


class GoneError(Exception):
    """A version of a table can no longer be read."""


GROUP = ["cluster", "group_id"]


class StoredTable(NamedTuple):
    """The id of a stored table, which no other table of that name shares, and its number of files."""

    table_id: str
    files: int


def columns(name: TableName) -> tuple[str, ...] | None:
    """Return the names of the table's columns; None if it does not exist."""
    try:
        return tuple(SparkSession.active().table(name).columns)
    except AnalysisException as error:
        if error.getCondition() in ABSENT:
            return None
        raise


def stored(name: TableName) -> StoredTable | None:
    """Return which table has this name; None if none has."""
    if columns(name) is None:
        return None
    row = SparkSession.active().sql(f"DESCRIBE DETAIL {name}").select("id", "numFiles").collect()[0]
    return StoredTable(str(row["id"]), int(row["numFiles"]))


def properties(name: TableName) -> dict[str, str]:
    """Return the properties of the table."""
    return {row["key"]: row["value"] for row in SparkSession.active().sql(f"SHOW TBLPROPERTIES {name}").collect()}


def ensure(name: TableName, table: Table, wanted: Mapping[str, str]) -> dict[str, str]:
    """Create the table with the properties `wanted` unless it exists, and add the columns that an older one lacks.
    Return the properties that it had before, which are none if it was missing.

    Raises:
        UserError: a newer version of Regroup wrote the table, or its schema does not exist.
    """
    spark, known = SparkSession.active(), columns(name)
    if known is None:
        try:
            spark.sql(creation(name, table, wanted)).collect()
        except AnalysisException as error:
            if error.getCondition() not in NO_SCHEMA:
                raise
            raise UserError(
                f"There is no schema for the table {name}: create it with CREATE SCHEMA, or correct the setting tables."
            ) from None
        return {}
    before = properties(name)
    version = schema_version(before)
    refuse_newer(name, version)
    if missing := missing_columns(known, table):
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(defined, missing))})").collect()
    if version < SCHEMA_VERSION:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{VERSION_PROPERTY}' = '{SCHEMA_VERSION}')").collect()
    return before


def missing_columns(known: Collection[str], table: Table) -> list[Column]:
    """Return the columns that an older table, which has the columns `known`, lacks, and report them in one line."""
    missing = [column for column in table.columns if column.name not in known]
    if missing:
        names = ", ".join(column.name for column in missing)
        say(f"The table {table.name} comes from an earlier version of Regroup and gets the new columns {names}.")
    return missing


def refuse_newer(name: str, version: int) -> None:
    """Raise `UserError` if the schema version of a table is one that only a newer Regroup knows."""
    if version > SCHEMA_VERSION:
        raise UserError(
            f"The table {name} has schema version {version}, written by a newer Regroup than this one (which knows "
            f"{SCHEMA_VERSION}): update Regroup, or choose another --warehouse."
        )


def creation(name: TableName, table: Table, wanted: Mapping[str, str]) -> str:
    """Return the statement that creates the table with the properties `wanted`, unless it exists."""
    defined_columns = ", ".join(defined(c) + (" NOT NULL" if c.name in table.key else "") for c in table.columns)
    given = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in wanted.items())
    clustered = f" CLUSTER BY ({', '.join(table.cluster_by)})" if table.cluster_by else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {name} ({defined_columns}) USING DELTA COMMENT {literal(table.comment)} "
        f"TBLPROPERTIES ({given}){clustered}"
    )


def defined(column: Column) -> str:
    """Return the definition of a column in a statement."""
    return f"`{column.name}` {column.type} COMMENT {literal(column.comment)}"


def frame(name: TableName, version: int | None = None, spark: SparkSession | None = None) -> DataFrame:
    """Return the table in its newest version when rows are read, or in the given version, for queries of `spark`."""
    spark = spark or SparkSession.active()
    return spark.table(name) if version is None else spark.sql(f"SELECT * FROM {name} VERSION AS OF {version:d}")  # noqa: S608 - our own names


def follow(spark: SparkSession, name: TableName, version: int | None = None) -> DataFrame:
    """Return new rows as a stream, as `delta_io.follow` does."""
    stream = spark.readStream.format("delta").option("skipChangeCommits", "true")
    if version is not None:
        stream = stream.option("startingVersion", version)
    # Delta refuses a path as the name of a stream's table.
    return stream.load(name.address) if name.address else stream.table(name)


def rows(
    name: TableName,
    table: Table,
    wanted: Sequence[str],
    *,
    since: tuple[str, int] | None = None,
    groups: pa.Table | None = None,
    where: str | None = None,
    version: int | None = None,
    is_distinct: bool = False,
) -> pa.Table:
    """Return these columns in this process: rows of these groups (cluster, group_id), from `since` (column and ms) on,
    and for which the SQL condition `where` is true. A row without that time is returned as well. With `is_distinct`,
    equal rows are returned once.
    """
    found = frame(name, version)
    if groups is not None:
        found = found.join(F.broadcast(found.sparkSession.createDataFrame(groups.select(GROUP))), GROUP, "left_semi")
    if since is not None:
        found = found.where(not_before(*since))
    if where is not None:
        found = found.where(where)
    known = [column for column in wanted if column in found.columns]
    kind = schema_of(table)
    found = found.select(*known)
    read = (found.distinct() if is_distinct else found).toArrow()
    arrays = [read[name] if name in known else pa.nulls(read.num_rows, kind.field(name).type) for name in wanted]
    return pa.table(arrays, names=list(wanted)).cast(pa.schema([kind.field(name) for name in wanted]))


def of_cluster(cluster: str) -> str:
    """Return the condition for the rows of this cluster."""
    return f"cluster = {literal(cluster)}"


def ask(query: str, names: Mapping[str, TableName]) -> pa.Table:
    """Return the result of a query in which each table's plain name stands in braces."""
    frames: dict[str, Any] = {plain: frame(name) for plain, name in names.items()}
    return SparkSession.active().sql(query, **frames).toArrow()


def changed(name: TableName, wanted: Sequence[str], time: str, before: int, now: int) -> list[tuple[str, str, int]]:
    """Return the groups whose rows differ in these columns between two versions: (cluster, group_id, first `time`, ms).

    Raises:
        GoneError: a version can no longer be read.
    """
    if before == now:
        return []
    compared = ", ".join(f"`{column}`" for column in wanted)
    query = (
        f"WITH gone AS (SELECT {compared} FROM {name} VERSION AS OF {before:d}), "  # noqa: S608 - our own names
        f"come AS (SELECT {compared} FROM {name} VERSION AS OF {now:d}) "
        f"SELECT cluster, group_id, min(unix_millis({time})) FROM ("
        "(SELECT * FROM gone EXCEPT SELECT * FROM come) UNION ALL (SELECT * FROM come EXCEPT SELECT * FROM gone)) "
        "GROUP BY cluster, group_id"
    )
    try:
        return [tuple(row) for row in SparkSession.active().sql(query).collect()]
    except PySparkException as error:
        raise GoneError(str(error)) from error


def not_before(column: str, at_ms: int) -> SparkColumn:
    """Return the condition for rows from a time on. A row without that time fulfils it."""
    begin = datetime.fromtimestamp(at_ms / 1000, UTC)
    return F.col(column).isNull() | (F.col(column) >= F.lit(begin))


def version(name: TableName) -> int:
    """Return the newest version of the table."""
    return int(SparkSession.active().sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0]["version"])


def commits_after(name: TableName, before: int) -> list[Row]:
    """Return the commits after the version `before`, newest first, with `operation` and `operationMetrics`."""
    history = SparkSession.active().sql(f"DESCRIBE HISTORY {name}").where(f"version > {before:d}")
    return history.select("operation", "operationMetrics").orderBy(F.desc("version")).collect()


def first_version(name: TableName) -> int:
    """Return the oldest version whose commit the table's log still has."""
    history = SparkSession.active().sql(f"DESCRIBE HISTORY {name}").agg(F.min("version"))
    return int(history.collect()[0][0] or 0)
