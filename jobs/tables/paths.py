"""The paths and the names of stored tables. Only `jobs.tables` and `jobs.retention` know them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dashboards.lake.sql_names import quoted, source
from jobs.tables.disk.table_log import actions_in, commit_of
from jobs.tables.location import location
from schemas.tables import Table


class TableName(str):
    """The name of a table in Spark's SQL, quoted."""

    __slots__ = ()

    @property
    def address(self) -> str | None:
        """Return the address of the table's folder; None if a catalog has the table."""
        return self[7:-1].replace("``", "`") if self.startswith("delta.`") else None


def table_path(warehouse: str | Path, table: Table) -> str:
    """Return the folder of a table, or a `TableName` if the tables are elsewhere."""
    there = location(warehouse)
    return f"{warehouse}/{table.name}" if there is None else TableName(source(there, table.name))


def named_by_path(path: str) -> TableName:
    """Return the name of a table: `path` is the folder of a Delta table, or a name."""
    return path if isinstance(path, TableName) else TableName(f"delta.{quoted(path)}")


def local(uri: str) -> str:
    """Return the local path of a file URI of Delta."""
    return unquote(uri.removeprefix("file://")) if uri.startswith("file://") else uri


def actions(path: str, version: int) -> list[dict[str, Any]] | None:
    """Return the actions of a commit in the log of the table at `path`; None if the log no longer has that version."""
    return actions_in(commit_of(Path(path, "_delta_log"), version))
