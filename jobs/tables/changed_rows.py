"""Which rows of a Delta table differ between two states of it: Delta rewrites whole files, few rows of which change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from jobs.tables.delta_io import actions
from jobs.tables.engine import connect

GoneError = (FileNotFoundError, pa.ArrowException, duckdb.Error)
"""A file was vacuumed, or written before the table had all its columns: then nothing is known of what changed."""

LOOKED_BACK = 500
"""Commits, of the log that is read for what was put together: that of more takes longer than comparing."""


class TableSnapshot(NamedTuple):
    """A state of a table: its version, and where its files are."""

    version: int
    files: Sequence[str]

    @classmethod
    def of(cls, table: DeltaTable) -> TableSnapshot:
        return cls(table.version(), sorted(table.file_uris()))


def changed(columns: Sequence[str], time: str, before: TableSnapshot, now: TableSnapshot) -> list[tuple[str, str, int]]:
    """(cluster, group_id, earliest `time` in milliseconds) of the groups whose rows are not those of `before`, as far
    as `columns` go.

    Raises:
        GoneError: a file cannot be read any more.
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
    """Files that hold the rows of `now`: for what was put together since those that it was made of, whose rows nobody
    has to compare with them.
    """
    found = set(now.files)
    folder = next(iter(now.files), "").rpartition("/")[0]
    for version in range(now.version, max(before.version, now.version - LOOKED_BACK), -1):
        if (told := actions(local(folder), version)) is None:
            break
        come, gone = (
            {f"{folder}/{each[kind]['path']}" for each in told if kind in each and not each[kind]["dataChange"]}
            for kind in ("add", "remove")
        )
        if come and come <= found:
            found = (found - come) | gone
    return found


def _rows(columns: Sequence[str], paths: Iterable[str]) -> pa.Table:
    parts = [pq.ParquetFile(local(path)).read(columns=list(columns)) for path in paths]
    return pa.concat_tables(parts) if parts else pa.table({name: pa.array([], pa.null()) for name in columns})


def local(uri: str) -> str:
    """The path of a file that Delta names."""
    return unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri
