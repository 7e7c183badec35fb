"""Which rows of a Delta table differ between two states of it: Delta rewrites whole files, few rows of which change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.as_of import opened
from jobs.engine import connect
from schemas.tables import Table

GoneError = (FileNotFoundError, pa.ArrowException, duckdb.Error)
"""A file was vacuumed, or written before the table had all its columns: then nothing is known of what changed."""


def files(warehouse: Path, table: Table) -> list[str]:
    """The table's files as it stands."""
    return sorted(opened(warehouse, table).file_uris())


def changed(columns: Sequence[str], time: str, gone: Iterable[str], come: Iterable[str]) -> list[tuple[str, str, int]]:
    """(cluster, group_id, earliest `time` in milliseconds) of the groups whose rows in files `come` are not those in
    files `gone`, as far as `columns` go.

    Raises:
        GoneError: a file cannot be read any more.
    """
    sides = [_rows(columns, paths) for paths in (gone, come)]
    with connect() as engine:
        for name, side in zip(("gone", "come"), sides, strict=True):
            engine.register(name, side)
        return engine.sql(
            f"SELECT cluster, group_id, CAST(min(epoch_ms({time})) AS BIGINT) FROM ("  # noqa: S608 - our names
            "(SELECT * FROM gone EXCEPT SELECT * FROM come) UNION ALL (SELECT * FROM come EXCEPT SELECT * FROM gone)) "
            "GROUP BY ALL"
        ).fetchall()


def _rows(columns: Sequence[str], paths: Iterable[str]) -> pa.Table:
    parts = [pq.ParquetFile(local(path)).read(columns=list(columns)) for path in paths]
    return pa.concat_tables(parts) if parts else pa.table({name: pa.array([], pa.null()) for name in columns})


def local(uri: str) -> str:
    """The path of a file that Delta names."""
    return unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri
