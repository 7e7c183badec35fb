"""Rows of silver as they stand before a batch: of few groups DuckDB reads them, of many Spark.

Of few groups, planning a read of Delta takes Spark longer than all there is to read. Either way only those rows come to
the driver that a batch may replace, however long the groups' history is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.delta_io import read
from jobs.replace import PRUNED_GROUPS
from jobs.silver_rows import dataset
from pipelines.arrow_types import row_type
from pipelines.silver.restarts import NEEDED, after_base, replaced
from schemas.tables import Table

Group = tuple[str, str]
GROUP = ["cluster", "group_id"]


def groups_of(rows: pa.Table) -> list[Group]:
    """Cluster and group id of each row."""
    return list(zip(*(rows[name].to_pylist() for name in GROUP), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The silver tables of a warehouse, as far as `groups` go."""

    spark: SparkSession
    warehouse: Path
    groups: Sequence[Group]

    @property
    def are_few(self) -> bool:
        return len(self.groups) <= PRUNED_GROUPS

    def needed(self, table: Table) -> DataFrame:
        """What `restarts` and `committing` need of the table; of many groups all of it."""
        if not self.are_few:
            return read(self.spark, self.warehouse, table)
        named = pa.Table.from_pylist([dict(zip(GROUP, group, strict=True)) for group in self.groups])
        return self.spark.createDataFrame(self._rows(table, named, NEEDED.get(table.name, "")))

    def replaced(self, table: Table, points: pa.Table) -> pa.Table:
        """The rows that a rebuild from `points` (what `restarts` returns) replaces."""
        if self.are_few:
            return self._rows(table, points, f"WHERE point.base_offset IS NULL OR {after_base(table)}")
        stand = self.spark.createDataFrame(points)
        return replaced(read(self.spark, self.warehouse, table), table, stand).toArrow()

    def _rows(self, table: Table, points: pa.Table, tail: str) -> pa.Table:
        """Rows `old` of the table whose groups are among `points` (`point`) and for which `tail` holds."""
        columns = ", ".join(f'old."{name}"' for name in table.names)
        with duckdb.connect() as engine:
            engine.execute("SET TimeZone = 'UTC'")
            engine.register("stored", dataset(self.warehouse, table))
            engine.register("points", points)
            found = engine.sql(
                f"SELECT {columns} FROM stored old JOIN points point "  # noqa: S608 - our own names
                f"ON old.cluster = point.cluster AND old.group_id = point.group_id {tail}"
            ).to_arrow_table()
        found = found.cast(pa.schema(list(row_type(table))))
        # Spark takes no column of no pieces.
        return found if found.num_rows else found.schema.empty_table()
