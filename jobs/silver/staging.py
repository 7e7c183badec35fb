"""The staging table of tables elsewhere: rows that Spark computed once, and that several statements then read.

Spark would otherwise compute them again for each statement, or this process would hold them. Serverless compute keeps
no rows between two statements.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.tables.append import replace_table
from jobs.tables.delta_io import read, table_path
from jobs.tables.location import TableName, named_by_path
from jobs.tables.transactions import retry_commit
from pipelines.rows_of_tables import table_of
from schemas.tables import Table

STAGING = Table(
    name="rebuilt_rows",
    layer="silver",
    key=(),
    cluster_by=(),
    comment="Rows of one batch of build, before they are merged into the tables. Only Regroup reads them.",
    columns=(),
)
"""The table, whose columns are those of the rows in it. Each batch overwrites it, so a batch that was ended leaves
nothing that the next one has to remove. Rows are left after the last batch: `maintain` and `erase` delete them.
"""

RECENT = 20
"""Newest commits among which a process looks for its own. Another process may have written others after it."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows in one version of the staging table, one struct column per table. No other process changes that version."""

    spark: SparkSession
    warehouse: Path
    version: int

    @classmethod
    def write(cls, spark: SparkSession, warehouse: Path, rows: DataFrame) -> StagedRows:
        """Overwrite the staging table by these rows."""
        path, mark = table_path(warehouse, STAGING), uuid.uuid4().hex
        replace_table(rows, path, mark)
        commits = spark.sql(f"DESCRIBE HISTORY {named_by_path(path)} LIMIT {RECENT}")
        version = commits.where(F.col("userMetadata") == mark).select("version").collect()[0][0]
        return cls(spark, warehouse, int(version))

    def of(self, table: Table) -> DataFrame:
        """Return the rows of one table."""
        return table_of(read(self.spark, self.warehouse, STAGING, self.version), table)


def written_ms(name: TableName) -> int:
    """Return the time in ms at which a batch last wrote the staging table; 0 if its log no longer has that commit."""
    commits = SparkSession.active().sql(f"DESCRIBE HISTORY {name}").where("userMetadata IS NOT NULL")
    return int(commits.agg(F.max(F.unix_millis("timestamp"))).collect()[0][0] or 0)


def empty(name: TableName) -> int:
    """Delete the rows of the staging table; return their number. A batch that reads them goes on with its version."""
    statement = f"DELETE FROM {name}"  # noqa: S608 - our own names
    rows = retry_commit(name, lambda: SparkSession.active().sql(statement).collect(), alone=True)
    return int(rows[0][0])
