"""The staging table of tables elsewhere: rows that Spark computed once, and that several statements then read.

Spark would otherwise compute them again for each statement, or this process would hold them. Serverless compute keeps
no rows between two statements.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jobs.tables.append import replace_table
from jobs.tables.delta_io import read
from jobs.tables.spark_commit import delete_rows, marked_version
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


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows in one version of the staging table, one struct column per table. No other process changes that version."""

    spark: SparkSession
    warehouse: Path
    version: int

    @classmethod
    def write(cls, spark: SparkSession, warehouse: Path, rows: DataFrame) -> StagedRows:
        """Overwrite the staging table by these rows."""
        mark = uuid.uuid4().hex
        replace_table(rows, warehouse, STAGING, mark)
        return cls(spark, warehouse, marked_version(spark, warehouse, STAGING, mark))

    def of(self, table: Table) -> DataFrame:
        """Return the rows of one table."""
        return table_of(read(self.spark, self.warehouse, STAGING, self.version), table)


def empty(spark: SparkSession, warehouse: Path) -> int:
    """Delete the rows of the staging table; return their number. A batch that reads them goes on with its version."""
    return delete_rows(spark, warehouse, STAGING)
