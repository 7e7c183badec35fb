"""New rows of a bronze table from one batch: few rows in memory, more in data files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from duckdb import DuckDBPyConnection
from pyspark.sql import DataFrame

from jobs.tables.disk.data_file import DataFile
from jobs.tables.engine import show_files
from jobs.tables.output import WRITTEN
from jobs.tables.paths import table_path
from jobs.tables.silver_rows import current_files
from pipelines.arrow_types import row_type, schema_of
from pipelines.rows_of_tables import rows_of
from schemas.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """New rows of one table. `few` has the table's columns. `files` are in `folder`, whether committed yet or not."""

    table: Table
    few: pa.Table
    files: tuple[DataFile, ...] = ()
    folder: str = ""

    @classmethod
    def of(cls, table: Table, rows: Iterable[Mapping[str, Any]]) -> Self:
        """Return rows of Python values, with timestamps as datetimes."""
        return cls(table=table, few=pa.Table.from_struct_array(pa.array(rows, row_type(table))))

    @classmethod
    def of_frame(cls, table: Table, frame: DataFrame) -> Self:
        """Return all rows of the frame, collected in the driver."""
        return cls(table=table, few=_typed(frame.toArrow(), table))

    @classmethod
    def stored(cls, warehouse: Path, table: Table) -> Self:
        """Return all rows of a table in a folder, by its files, whose rows are not counted."""
        names = [Path(file).name for file in current_files(warehouse, table)]
        files = tuple(DataFile(name=name, rows=0, size=0, stats="") for name in names)
        few = schema_of(table).empty_table()
        return cls(table=table, few=few, files=files, folder=table_path(warehouse, table))

    def __len__(self) -> int:
        return int(self.few.num_rows) + sum(file.rows for file in self.files)

    def and_(self, other: NewRows) -> NewRows:
        """Return the rows of both. They must have the same table."""
        few = pa.concat_tables([self.few, other.few])
        return NewRows(table=self.table, few=few, files=self.files + other.files, folder=self.folder or other.folder)

    def show(self, connection: DuckDBPyConnection) -> None:
        """Register all rows as a view with the table's name."""
        name = self.table.name
        connection.register(f"{name} few", self.few)
        show_files(connection, f"{name} many", self.table, [f"{self.folder}/{file.name}" for file in self.files])
        connection.register(name, connection.sql(f'FROM "{name} few" UNION ALL BY NAME FROM "{name} many"'))


def collected(found: pa.Table, tables: Collection[Table], warehouse: str | Path) -> dict[Table, NewRows]:
    """Return the output of tasks (`jobs.tables.output`) by table, without tables that have no new rows."""
    files = defaultdict(list)
    for entry in found.column(WRITTEN).drop_null().to_pylist():
        files[entry.pop("table")].append(DataFile(**entry))
    out = {}
    for table in tables:
        few = _typed(rows_of(found, table), table)
        new = NewRows(table=table, few=few, files=tuple(files[table.name]), folder=table_path(warehouse, table))
        if len(new):
            out[table] = new
    return out


def _typed(rows: pa.Table, table: Table) -> pa.Table:
    return rows.cast(schema_of(table))
