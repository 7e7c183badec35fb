"""The output of a task for several tables: one struct column per table, of which each row fills one.

A task with many rows may write them as data files of the tables instead, and yield the files' descriptions. Passing the
rows through the JVM and Spark's cache would take longer than all the work before.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dashboards.lake.allocators import trim
from jobs.tables.disk.data_file import write
from jobs.tables.paths import table_path
from pipelines import rows_of_tables
from pipelines.arrow_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from schemas.tables import Table


WRITTEN = "_written"
"""The column of written files: the table's name and the fields of a `DataFile`."""
WRITTEN_COLUMNS = {"table": "STRING", "name": "STRING", "rows": "BIGINT", "size": "BIGINT", "stats": "STRING"}
WRITTEN_TYPE = pa.struct([(name, TYPES[kind]) for name, kind in WRITTEN_COLUMNS.items()])

FEW_BYTES = 32_000_000
"""Bytes up to which a task yields its rows. They fit into the driver together with those of other tasks."""

FILE_BYTES = 128_000_000
"""Bytes of rows in memory at which a task writes them. The files are some tens of times smaller."""


def folders_of(warehouse: Path, tables: Iterable[Table]) -> dict[str, str]:
    """Return the folders of tables by name, in which tasks may write data files."""
    return {table.name: str(Path(table_path(warehouse, table)).absolute()) for table in tables}


def ddl(tables: Sequence[Table]) -> str:
    """Return the columns of the tasks' output as a schema for Spark."""
    written = ", ".join(f"{name}: {kind}" for name, kind in WRITTEN_COLUMNS.items())
    return f"{rows_of_tables.ddl(tables)}, {WRITTEN} STRUCT<{written}>"


def schema(tables: Sequence[Table]) -> pa.Schema:
    """Return the columns of the tasks' output as an Arrow schema."""
    return pa.schema([*rows_of_tables.types(tables).items(), (WRITTEN, WRITTEN_TYPE)])


def union(rows: Mapping[str, pa.Array], tables: Sequence[Table]) -> Iterator[pa.RecordBatch]:
    """Yield rows by table name, or descriptions of written files, as batches with all columns."""
    return rows_of_tables.batches(rows, rows_of_tables.types(tables) | {WRITTEN: WRITTEN_TYPE})


@dataclass(slots=True, kw_only=True)
class Output:
    """The rows that a task yields. If there are many and `folders` has the tables' folders, it writes data files
    instead.
    """

    tables: Sequence[Table]
    folders: Mapping[str, str] = field(default_factory=dict)
    few_bytes: int = FEW_BYTES
    file_bytes: int = FILE_BYTES
    _rows: dict[str, list[pa.Array]] = field(default_factory=lambda: defaultdict(list))
    _written: list[dict[str, object]] = field(default_factory=list)

    def of(self, rows: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        """Add rows, and yield the part that can be yielded already."""
        if not self.folders:
            yield from union(rows, self.tables)
            return
        for name, array in rows.items():
            self._rows[name].append(array)
        if self._bytes() >= self.file_bytes:
            self._write()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows, or the descriptions of the written files."""
        if self._written or self._bytes() > self.few_bytes:
            self._write()
            yield from union({WRITTEN: pa.array(self._written, WRITTEN_TYPE)}, self.tables)
        for name, arrays in self._rows.items():
            for array in arrays:
                yield from union({name: array}, self.tables)
        self._rows.clear()
        # Spark reuses its workers, and a large task would leave hundreds of MB to small ones.
        trim()

    def _bytes(self) -> int:
        return sum(array.nbytes for arrays in self._rows.values() for array in arrays)

    def _write(self) -> None:
        for name, arrays in self._rows.items():
            rows = pa.Table.from_struct_array(pa.chunked_array(arrays))
            if rows.num_rows:
                self._written.append({"table": name, **asdict(write(Path(self.folders[name]), rows))})
        self._rows.clear()
