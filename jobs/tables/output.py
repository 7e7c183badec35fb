"""What a task yields of the rows of several tables: one struct column for each table, of which each row fills one.

Where a task has many rows it may write them as data files of the tables instead, and yield what the files are: through
the JVM and Spark's cache they would take longer than all that was done before.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.tables.data_file import write
from jobs.tables.memory import trim
from pipelines import rows_of_tables
from pipelines.arrow_types import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from schemas.tables import Table


WRITTEN = "_written"
"""The column of what was written: the name of a table and a `DataFile` of it."""
WRITTEN_COLUMNS = {"table": "STRING", "name": "STRING", "rows": "BIGINT", "size": "BIGINT", "stats": "STRING"}
WRITTEN_TYPE = pa.struct([(name, TYPES[kind]) for name, kind in WRITTEN_COLUMNS.items()])

FEW_BYTES = 32_000_000
"""A task's rows are few up to so many bytes: they fit into the driver, with those of other tasks."""

FILE_BYTES = 128_000_000
"""So much of rows a task holds before it writes them, some tens of times smaller."""


def ddl(tables: Sequence[Table]) -> str:
    """The columns of what tasks yield, as Spark takes them."""
    written = ", ".join(f"{name}: {kind}" for name, kind in WRITTEN_COLUMNS.items())
    return f"{rows_of_tables.ddl(tables)}, {WRITTEN} STRUCT<{written}>"


def union(rows: Mapping[str, pa.Array], tables: Sequence[Table]) -> Iterator[pa.RecordBatch]:
    """Rows by table name, or what was written instead, as batches of all columns."""
    return rows_of_tables.batches(rows, rows_of_tables.types(tables) | {WRITTEN: WRITTEN_TYPE})


@dataclass(slots=True, kw_only=True)
class Output:
    """What a task yields of the rows of its tables: themselves, or where they are many and there are `folders`, data
    files in these, by the tables' names.
    """

    tables: Sequence[Table]
    folders: Mapping[str, str] = field(default_factory=dict)
    few_bytes: int = FEW_BYTES
    file_bytes: int = FILE_BYTES
    _rows: dict[str, list[pa.Array]] = field(default_factory=lambda: defaultdict(list))
    _written: list[dict[str, object]] = field(default_factory=list)

    def of(self, rows: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        """What can be yielded of these already."""
        if not self.folders:
            yield from union(rows, self.tables)
            return
        for name, array in rows.items():
            self._rows[name].append(array)
        if self._bytes() >= self.file_bytes:
            self._write()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What is left."""
        if self._written or self._bytes() > self.few_bytes:
            self._write()
            yield from union({WRITTEN: pa.array(self._written, WRITTEN_TYPE)}, self.tables)
        for name, arrays in self._rows.items():
            for array in arrays:
                yield from union({name: array}, self.tables)
        self._rows.clear()
        # Spark keeps its workers, and a task of millions of rows would leave hundreds of MB to those of thousands.
        trim()

    def _bytes(self) -> int:
        return sum(array.nbytes for arrays in self._rows.values() for array in arrays)

    def _write(self) -> None:
        for name, arrays in self._rows.items():
            rows = pa.Table.from_struct_array(pa.chunked_array(arrays))
            if rows.num_rows:
                self._written.append({"table": name, **asdict(write(Path(self.folders[name]), rows))})
        self._rows.clear()
