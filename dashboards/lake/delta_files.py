"""The Delta tables of a folder: their versions, and each version's Parquet files as a DuckDB view."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from duckdb import DuckDBPyConnection, DuckDBPyRelation, IOException

from schemas.gold import POD_CHANGES
from schemas.tables import schema_version, struct_fields

SETTLED_SECONDS = 2.0
"""If a log folder changed more recently, it may have changed again within one tick of the file system's clock."""


ADDED = {
    "generations": (("folded_count", pa.int32()), ("last_generation_id", pa.int32())),
    "verdicts": (
        ("folded_count", pa.int32()),
        (
            "pod_changes",
            pa.list_(
                pa.struct(
                    [(n, pa.int64() if kind == "BIGINT" else pa.string()) for n, kind in struct_fields(POD_CHANGES)]
                )
            ),
        ),
    ),
}
"""Columns by table that queries name and that tables of an earlier Regroup lack, where they are NULL."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Source(ABC):
    """One version of a table; equal only to itself.

    `files` names its files. `schema` has the columns of the table and those of `ADDED`. `schema_version` is that of the
    Regroup that wrote the table.
    """

    version: int
    schema_version: int
    files: tuple[str, ...]
    schema: pa.Schema

    @abstractmethod
    def rows(self, cursor: DuckDBPyConnection, name: str, files: Sequence[str]) -> str:
        """Return the rows of the given files of this version as SQL for FROM, for this cursor."""

    @abstractmethod
    def with_file_names(self, cursor: DuckDBPyConnection, files: Sequence[str]) -> DuckDBPyRelation:
        """Return the rows of the given files with the column `filename`, which is the name in `files`."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FolderSource(Source):
    """A version in a folder. `files` are absolute paths. `is_even` is True if every file has every column."""

    is_even: bool

    def rows(self, cursor: DuckDBPyConnection, name: str, files: Sequence[str]) -> str:
        # A text takes half as long as a registered relation, which is bound several times.
        if files and self.is_even:
            return f"read_parquet([{', '.join(map(literal, files))}])"
        cursor.register(f"{name} rows", relation(cursor, name, files, self.schema, is_even=self.is_even))
        return quoted(f"{name} rows")

    def with_file_names(self, cursor: DuckDBPyConnection, files: Sequence[str]) -> DuckDBPyRelation:
        return cursor.read_parquet(list(files), filename=True)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def relation(
    cursor: DuckDBPyConnection, name: str, files: Sequence[str], schema: pa.Schema, *, is_even: bool
) -> DuckDBPyRelation:
    """Return the rows of a table's Parquet files, for this cursor. `is_even`: every file has all of its columns."""
    if not files:
        return cursor.from_arrow(schema.empty_table())
    written = cursor.read_parquet(list(files), union_by_name=not is_even)
    if is_even:
        return written
    # Columns that no file has are NULL, with the type in the schema.
    cursor.register(f"{name} written", written)
    cursor.register(f"{name} nothing", schema.empty_table())
    return cursor.sql(f'FROM "{name} nothing" UNION ALL BY NAME FROM "{name} written"')


def complete_schema(name: str, table: DeltaTable) -> pa.Schema:
    """Return the columns of a table and those of `ADDED` that it lacks."""
    stored = pa.schema(table.schema().to_arrow())
    added = [pa.field(*each) for each in ADDED.get(name, ()) if each[0] not in stored.names]
    return pa.schema([*stored, *added])


@dataclass(slots=True)
class _OpenTable:
    identity: int
    table: DeltaTable
    changed_ns: int
    source: FolderSource | None = None


class DeltaFiles:
    """The tables `<warehouse>/<table>`, as the jobs write them. Not thread-safe."""

    def __init__(self, warehouse: Path, names: Iterable[str], fresh_seconds: float) -> None:
        self._warehouse = warehouse.absolute()
        self._names = tuple(names)
        self._fresh_seconds = fresh_seconds
        self._checked_at: dict[str, float] = {}
        self._open: dict[str, _OpenTable] = {}
        self._columns: dict[str, dict[str, frozenset[str]]] = {}

    def versions(self) -> Mapping[str, int]:
        self._refresh(self._names)
        return {name: open_.table.version() for name, open_ in self._open.items()}

    def changed_at(self) -> Mapping[str, int]:
        return {name: int(open_.table.history(1)[0]["timestamp"]) for name, open_ in self._open.items()}

    def source(self, name: str) -> FolderSource | None:
        """Return the newest version; None if the table does not exist or is just being created."""
        self._refresh((name,))
        for _ in range(2):
            open_ = self._open.get(name)
            if open_ is None:
                return None
            try:
                if open_.source is None or open_.source.version != open_.table.version():
                    open_.source = self._read(name, open_.table)
            except (DeltaError, OSError):
                # Files of a version that is no longer the newest may have been deleted.
                self.forget(name)
                self._update(name)
            else:
                return open_.source
        return None

    def is_outdated(self, error: Exception) -> bool:
        """Return whether a query failed because files of the open version were deleted."""
        return isinstance(error, IOException)

    def forget(self, name: str) -> None:
        """Reopen the table at its next use."""
        self._open.pop(name, None)
        self._checked_at.pop(name, None)

    def _refresh(self, names: Iterable[str]) -> None:
        """Read newer versions, unless the table was checked within `fresh_seconds`."""
        for name in names:
            if monotonic() - self._checked_at.get(name, float("-inf")) >= self._fresh_seconds:
                self._update(name)
                self._checked_at[name] = monotonic()

    def _update(self, name: str) -> None:
        try:
            log = (self._warehouse / name / "_delta_log").stat()
            open_ = self._open.get(name)
            # A new folder of the same name is a new table, even with the same version number.
            if open_ is None or open_.identity != log.st_ino:
                self._open[name] = _OpenTable(log.st_ino, DeltaTable(str(self._warehouse / name)), log.st_mtime_ns)
            elif open_.changed_ns != log.st_mtime_ns or time() - log.st_mtime < SETTLED_SECONDS:
                open_.table.update_incremental()
                open_.changed_ns = log.st_mtime_ns
        except (DeltaError, OSError):
            # The table is missing or just being created; it is absent until it can be opened.
            self.forget(name)

    def _read(self, name: str, table: DeltaTable) -> FolderSource:
        folder = self._warehouse / name
        schema = complete_schema(name, table)
        paths = pa.table(table.get_add_actions()).column("path").to_pylist()
        files = tuple(f"{folder}/{unquote(path)}" for path in paths)
        # A table that is being written gets new files every few seconds, so entries of removed files are dropped.
        known = self._columns.get(name, {})
        read = {file: frozenset(pq.read_schema(file).names) for file in files if file not in known}
        # Most files have the same columns, and one set of them for all takes 5 kB less per file.
        shared = {each: each for each in (*known.values(), *read.values())}
        columns = {file: shared[read[file] if file in read else known[file]] for file in files}
        self._columns[name] = columns
        is_even = all(each >= set(schema.names) for each in columns.values())
        written = schema_version(table.metadata().configuration)
        return FolderSource(
            version=table.version(), schema_version=written, files=files, schema=schema, is_even=is_even
        )
