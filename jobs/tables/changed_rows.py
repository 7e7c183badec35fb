"""Finds the rows that differ between two versions of a Delta table. Delta rewrites whole files, although few rows
change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from jobs.tables import named_tables
from jobs.tables.as_of import opened
from jobs.tables.engine import connect
from jobs.tables.paths import TableName, actions, local, table_path
from schemas.tables import Table

GoneError = (FileNotFoundError, pa.ArrowException, duckdb.Error, named_tables.GoneError)
"""The exceptions for a version that was vacuumed or lacks newer columns. The changes are then unknown."""

VERSIONS_BACK = 500
"""Commits whose log is searched for compacted files. Reading more of them takes longer than comparing the rows."""


class TableSnapshot(NamedTuple):
    """One version of a table: its number, and the URIs of its files. A table that only Spark reads has none here."""

    version: int
    files: Sequence[str]

    @property
    def paths(self) -> list[str]:
        """The local paths of the files, which `files` has as URIs."""
        return [local(file) for file in self.files]

    @classmethod
    def of(cls, table: DeltaTable) -> TableSnapshot:
        return cls(table.version(), sorted(table.file_uris()))


def snapshot(warehouse: Path, table: Table) -> TableSnapshot:
    """Return the current version of a table."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return TableSnapshot(named_tables.version(path), [])
    return TableSnapshot.of(opened(warehouse, table))


def changed_groups(
    warehouse: Path, table: Table, columns: Sequence[str], time: str, before: TableSnapshot, now: TableSnapshot
) -> list[tuple[str, str, int]]:
    """Return what `changed` returns, for a table of the warehouse.

    Raises:
        GoneError: a version can no longer be read.
    """
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return named_tables.changed(path, columns, time, before.version, now.version)
    return changed(columns, time, before, now)


def changed(columns: Sequence[str], time: str, before: TableSnapshot, now: TableSnapshot) -> list[tuple[str, str, int]]:
    """Return the groups whose rows differ from `before` in `columns`: (cluster, group_id, earliest `time` in ms).

    Raises:
        GoneError: a file can no longer be read.
    """
    old, new = set(before.files), _apart(before, now)
    if old == new:
        return []
    sides = [_rows(columns, paths) for paths in (old - new, new - old)]
    with connect() as engine:
        for name, side in zip(("gone", "come"), sides, strict=True):
            engine.register(name, side)
        return engine.sql(
            f"SELECT cluster, group_id, CAST(min(epoch_ms({time})) AS BIGINT) FROM ("  # noqa: S608 - our names
            "(SELECT * FROM gone EXCEPT SELECT * FROM come) UNION ALL (SELECT * FROM come EXCEPT SELECT * FROM gone)) "
            "GROUP BY ALL"
        ).fetchall()


def _apart(before: TableSnapshot, now: TableSnapshot) -> set[str]:
    """Return the files that hold the rows of `now`. A file from a later compaction is replaced by the files it was made
    of.

    Their rows are the same as before, so they need no comparison.
    """
    found = set(now.files)
    folder = next(iter(now.files), "").rpartition("/")[0]
    for version in range(now.version, max(before.version, now.version - VERSIONS_BACK), -1):
        if (commit := actions(local(folder), version)) is None:
            break
        come, gone = (
            {f"{folder}/{each[kind]['path']}" for each in commit if kind in each and not each[kind]["dataChange"]}
            for kind in ("add", "remove")
        )
        if come and come <= found:
            found = (found - come) | gone
    return found


def _rows(columns: Sequence[str], paths: Iterable[str]) -> pa.Table:
    parts = [pq.ParquetFile(local(path)).read(columns=list(columns)) for path in paths]
    return pa.concat_tables(parts) if parts else pa.table({name: pa.array([], pa.null()) for name in columns})
