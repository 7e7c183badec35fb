"""Reads rows of silver and gold without Spark: only the needed files and columns, with timestamps in ms."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from dashboards.lake.lake import milliseconds
from jobs.tables import named_tables
from jobs.tables.as_of import newest_of, opened, version_of
from jobs.tables.paths import TableName, table_path
from jobs.tables.table_facts import exists
from pipelines.arrow_types import row_type, schema_of
from schemas.tables import Table

NAMED = 2_000
"""Highest number of groups to name in a condition."""

ROUNDED_MS = 1_000
"""Margin in ms, because the limits of a file's timestamps may be rounded down."""


def rows(
    warehouse: Path,
    table: Table,
    columns: Sequence[str],
    *,
    where: pc.Expression | None = None,
    since: tuple[str, int] | None = None,
) -> list[dict[str, Any]]:
    """Return the current rows of a table, with timestamps in ms; none if the table is missing.

    `since` (column and ms) selects rows from that timestamp on.
    """
    out: list[dict[str, Any]] = milliseconds(
        stored_rows(warehouse, table, columns, where=where, since=since)
    ).to_pylist()
    return out


def stored_rows(
    warehouse: Path,
    table: Table,
    columns: Sequence[str],
    *,
    where: pc.Expression | None = None,
    since: tuple[str, int] | None = None,
) -> pa.Table:
    """Return the same rows as an Arrow table, with timestamps as they are stored."""
    if not exists(warehouse, table):
        return pa.schema([field for field in row_type(table) if field.name in columns]).empty_table()
    path = table_path(warehouse, table)
    if where is None and isinstance(path, TableName):
        # A condition may need other columns.
        return named_tables.rows(path, table, columns, since=since, version=version_of(table))
    if since is not None:
        late = pc.field(since[0]) >= timestamp_scalar(since[1])
        where = late if where is None else where & late
    # One row group at a time. By default, Arrow reads several ahead: 140 MB instead of 40 for 90,000 rows of a storm of
    # two hours, and no less time.
    return (
        dataset(warehouse, table, since=since)
        .scanner(columns=list(columns), filter=where, batch_readahead=1, fragment_readahead=1, use_threads=False)
        .to_table()
    )


def dataset(warehouse: Path, table: Table, *, since: tuple[str, int] | None = None) -> ds.Dataset:
    """Return a table as a dataset, without files that end before `since`."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return ds.dataset(named_tables.rows(path, table, table.names, since=since, version=version_of(table)))
    return _dataset(current_files(warehouse, table, since), table)


def newest(path: str, table: Table) -> ds.Dataset:
    """Return the newest version of the table at `path` as a dataset; `jobs.tables.as_of` does not affect it."""
    if isinstance(path, TableName):
        return ds.dataset(named_tables.rows(path, table, table.names))
    return _dataset(datafiles(path, newest_of(path)), table)


def _dataset(files: list[str], table: Table) -> ds.Dataset:
    """Return these files as a dataset that opens them without Python code.

    The datasets of deltalake have a file system in Python, which Arrow's threads call. If the process ends while one of
    them closes a file, CPython 3.11 to 3.13 ends that thread in the middle of C++ code, and the process aborts although
    its work is done.
    """
    return ds.dataset(files, schema=schema_of(table), format="parquet")


def current_files(warehouse: Path, table: Table, since: tuple[str, int] | None = None) -> list[str]:
    """Return the table's files without those that end before `since`. `jobs.tables.as_of` may set the version."""
    return datafiles(table_path(warehouse, table), opened(warehouse, table), since)


def datafiles(path: str, stored: DeltaTable, since: tuple[str, int] | None = None) -> list[str]:
    """Return the files of the table at `path` without those that, by Delta's statistics, end before `since`."""
    files = pa.table(stored.get_add_actions(flatten=True))
    if since is not None and f"max.{since[0]}" in files.column_names:
        begin = timestamp_scalar(since[1] - ROUNDED_MS)
        may = pc.fill_null(pc.greater_equal(files[f"max.{since[0]}"], begin), fill_value=True)
        # A row without a timestamp may be from any time.
        files = files.filter(pc.or_(may, pc.fill_null(pc.greater(files[f"null_count.{since[0]}"], 0), fill_value=True)))
    return [f"{path}/{unquote(name)}" for name in files["path"].to_pylist()]


def timestamp_scalar(ms: int) -> pa.Scalar:
    """Return milliseconds since the epoch as tables store them."""
    return pa.scalar(ms * 1000, pa.timestamp("us", tz="UTC"))


def milliseconds_of(timestamp: pa.Scalar) -> int:
    """Return a timestamp with a zone as milliseconds since the epoch."""
    at: datetime = timestamp.as_py()
    return round(at.timestamp() * 1000)


def among(groups: Collection[str]) -> pc.Expression:
    """Return a condition for these groups of any cluster. It is always true if there are too many to name."""
    if len(groups) > NAMED:
        return pc.scalar(value=True)
    return pc.field("group_id").isin(pa.array(sorted(groups), pa.string()))
