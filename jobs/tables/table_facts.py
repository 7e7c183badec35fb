"""Facts about stored tables: whether one exists, which one it is, and whether it has rows."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from jobs.tables import named_tables
from jobs.tables.delta_io import table_path
from jobs.tables.location import TableName
from schemas.tables import Table


def exists(warehouse: str | Path, table: Table) -> bool:
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return named_tables.columns(path) is not None
    return DeltaTable.is_deltatable(path)


def table_id(warehouse: str | Path, table: Table) -> str | None:
    """Return the id of a table, which no other table of that name shares; None if the table does not exist."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        found = named_tables.stored(path)
        return None if found is None else found.table_id
    return str(DeltaTable(path).metadata().id) if DeltaTable.is_deltatable(path) else None


def has_rows(warehouse: str | Path, table: Table) -> bool:
    """Return whether an existing table has any row."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        found = named_tables.stored(path)
        return found is not None and found.files > 0
    # By deltalake in milliseconds; the first query of Spark takes seconds.
    return bool(DeltaTable(path).file_uris())
