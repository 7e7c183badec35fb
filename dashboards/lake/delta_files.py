"""The Delta tables of a folder: their versions, and each version's Parquet files as a view for duckdb."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from schemas.tables import schema_version

SETTLED_SECONDS = 2.0
"""A log folder that changed less long ago may have changed again within the same tick of the file system's clock."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One version of a table, equal to itself alone. `is_even`: every file has every column. `schema_version`: of the
    Regroup that wrote it.
    """

    version: int
    schema_version: int
    files: tuple[str, ...]
    schema: pa.Schema
    is_even: bool

    def relation(self, cursor: DuckDBPyConnection, name: str, files: Sequence[str]) -> DuckDBPyRelation:
        """The rows of these of its files, for this cursor."""
        return relation(cursor, name, files, self.schema, is_even=self.is_even)


def relation(
    cursor: DuckDBPyConnection, name: str, files: Sequence[str], schema: pa.Schema, *, is_even: bool
) -> DuckDBPyRelation:
    """The rows of Parquet files of a table with this schema, for this cursor; `is_even`: each has all its columns."""
    if not files:
        return cursor.from_arrow(schema.empty_table())
    written = cursor.read_parquet(list(files), union_by_name=not is_even)
    if is_even:
        return written
    # What no file has is NULL, and of the type that the schema says.
    cursor.register(f"{name} written", written)
    cursor.register(f"{name} nothing", schema.empty_table())
    return cursor.sql(f'FROM "{name} nothing" UNION ALL BY NAME FROM "{name} written"')


@dataclass(slots=True)
class _OpenTable:
    identity: int
    table: DeltaTable
    changed_ns: int
    source: Source | None = None


class DeltaFiles:
    """`<warehouse>/<table>` as written by the jobs. Not safe for threads."""

    def __init__(self, warehouse: Path, names: Iterable[str], fresh_seconds: float) -> None:
        self._warehouse = warehouse.absolute()
        self._names = tuple(names)
        self._fresh_seconds = fresh_seconds
        self._looked_at: dict[str, float] = {}
        self._open: dict[str, _OpenTable] = {}
        self._columns: dict[str, dict[str, frozenset[str]]] = {}

    def versions(self) -> Mapping[str, int]:
        self._look(self._names)
        return {name: open_.table.version() for name, open_ in self._open.items()}

    def changed_at(self) -> Mapping[str, int]:
        return {name: int(open_.table.history(1)[0]["timestamp"]) for name, open_ in self._open.items()}

    def source(self, name: str) -> Source | None:
        """The newest version; None where there is no such table, or it is just being made."""
        self._look((name,))
        for _ in range(2):
            open_ = self._open.get(name)
            if open_ is None:
                return None
            try:
                if open_.source is None or open_.source.version != open_.table.version():
                    open_.source = self._read(name, open_.table)
            except (DeltaError, OSError):
                # The files of a version that is no longer the newest may be gone.
                self.forget(name)
                self._refresh(name)
            else:
                return open_.source
        return None

    def forget(self, name: str) -> None:
        """Open it anew when it is asked for next."""
        self._open.pop(name, None)
        self._looked_at.pop(name, None)

    def _look(self, names: Iterable[str]) -> None:
        """Whether there are newer versions, unless that was asked just now."""
        for name in names:
            if monotonic() - self._looked_at.get(name, float("-inf")) >= self._fresh_seconds:
                self._refresh(name)
                self._looked_at[name] = monotonic()

    def _refresh(self, name: str) -> None:
        try:
            log = (self._warehouse / name / "_delta_log").stat()
            open_ = self._open.get(name)
            # Another folder of the same name is another table, whatever its version number.
            if open_ is None or open_.identity != log.st_ino:
                self._open[name] = _OpenTable(log.st_ino, DeltaTable(str(self._warehouse / name)), log.st_mtime_ns)
            elif open_.changed_ns != log.st_mtime_ns or time() - log.st_mtime < SETTLED_SECONDS:
                open_.table.update_incremental()
                open_.changed_ns = log.st_mtime_ns
        except (DeltaError, OSError):
            # Not there, or just being made: it is absent until it can be opened.
            self.forget(name)

    def _read(self, name: str, table: DeltaTable) -> Source:
        folder = self._warehouse / name
        schema = pa.schema(table.schema().to_arrow())
        paths = pa.table(table.get_add_actions()).column("path").to_pylist()
        files = tuple(f"{folder}/{unquote(path)}" for path in paths)
        # A table under way has other files every few seconds: what was known of those that left is let go.
        known = self._columns.get(name, {})
        columns = {file: known.get(file) or frozenset(pq.read_schema(file).names) for file in files}
        self._columns[name] = columns
        is_even = all(each >= set(schema.names) for each in columns.values())
        written = schema_version(table.metadata().configuration)
        return Source(table.version(), written, files, schema, is_even)
