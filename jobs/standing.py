"""What a batch needs of bronze and silver as they stand: of few groups DuckDB reads it, of many Spark.

Of few groups, planning a read of Delta takes Spark longer than all there is to read. Either way only those rows come to
the driver that a batch may replace, however long the groups' history is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from jobs.delta_io import read
from jobs.silver_rows import dataset
from pipelines.arrow_types import row_type
from pipelines.silver.frame import RAW
from pipelines.silver.restarts import NEEDED, after_base, from_base, replaced, since_base
from schemas.tables import Table

FEW_GROUPS = 5_000
"""Up to so many, their rows fit into the driver, which finds them sooner than Spark plans to."""

FEW_ROWS = 300_000
"""So many rows of bronze go through the driver, not those of a long history that is read for the first time."""

ASTRAY_MS = 3_600_000
"""Clocks of two brokers differ by less: what was written after a record has a time at most so much before it."""

Group = tuple[str, str]
GROUP = ["cluster", "group_id"]


def groups_of(rows: pa.Table) -> list[Group]:
    """Cluster and group id of each row."""
    return list(zip(*(rows[name].to_pylist() for name in GROUP), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The tables of a warehouse, as far as `groups` go."""

    spark: SparkSession
    warehouse: Path
    groups: Sequence[Group]

    @property
    def are_few(self) -> bool:
        return len(self.groups) <= FEW_GROUPS

    def needed(self, table: Table) -> DataFrame:
        """What `restarts` and `committing` need of a silver table; of many groups all of it."""
        if not self.are_few:
            return read(self.spark, self.warehouse, table)
        named = pa.Table.from_pylist([dict(zip(GROUP, group, strict=True)) for group in self.groups])
        return self.spark.createDataFrame(self._rows(table, named, NEEDED.get(table.name, "")))

    def history(self, table: Table, points: pa.Table) -> DataFrame:
        """The rows of a bronze table that a rebuild from `points` (what `restarts` returns) needs."""
        if self.are_few:
            found = self._since(table, points, from_base(table), most=FEW_ROWS)
            if found.num_rows <= FEW_ROWS:
                return self.spark.createDataFrame(found)
        return since_base(read(self.spark, self.warehouse, table), table, self.spark.createDataFrame(points))

    def replaced(self, table: Table, points: pa.Table) -> pa.Table:
        """The rows of a silver table that a rebuild from `points` replaces."""
        if self.are_few:
            return self._since(table, points, after_base(table))
        stand = self.spark.createDataFrame(points)
        return replaced(read(self.spark, self.warehouse, table), table, stand).toArrow()

    def _since(self, table: Table, points: pa.Table, holds: str, *, most: int | None = None) -> pa.Table:
        """Rows `old` of the table for which `holds`; where there are more than `most`, some of them, more than `most`.

        For groups with a base, files are not opened whose rows are all from before it.
        """
        tail = f"WHERE {holds}" + (f" LIMIT {most + 1}" if most is not None else "")
        has_base = pc.is_valid(points["base_at"])
        parts = [self._rows(table, points.filter(pc.invert(has_base)), tail)]
        if (based := points.filter(has_base)).num_rows:
            earliest = round(pc.min(based["base_at"]).as_py().timestamp() * 1000) - ASTRAY_MS
            parts.append(self._rows(table, based, tail, since=(table.time, earliest) if table.time else None))
        return pa.concat_tables(parts)

    def _rows(self, table: Table, points: pa.Table, tail: str, since: tuple[str, int] | None = None) -> pa.Table:
        """Rows `old` of the table whose groups are among `points` (`point`) and for which `tail` holds."""
        kind = pa.schema([field for field in row_type(table) if field.name not in RAW])
        if not points.num_rows:
            return kind.empty_table()
        columns = ", ".join(f'old."{name}"' for name in kind.names)
        with duckdb.connect() as engine:
            engine.execute("SET TimeZone = 'UTC'")
            engine.register("stored", dataset(self.warehouse, table, since=since))
            engine.register("points", points)
            found = engine.sql(
                f"SELECT {columns} FROM stored old JOIN points point "  # noqa: S608 - our own names
                f"ON old.cluster = point.cluster AND old.group_id = point.group_id {tail}"
            ).to_arrow_table()
        found = found.cast(kind)
        # Spark takes no column of no pieces.
        return found if found.num_rows else kind.empty_table()
