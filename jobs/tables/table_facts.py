"""Facts about stored tables: whether one exists, which one it is, whether it has rows, and its versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from jobs.tables import named_tables
from jobs.tables.disk.table_log import commit_of
from jobs.tables.paths import TableName, actions, local, table_path
from schemas.tables import Table


def exists(warehouse: str | Path, table: Table) -> bool:
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return named_tables.columns(path) is not None
    return DeltaTable.is_deltatable(path)


def has_folder(warehouse: Path, table: Table) -> bool:
    """Return whether there is a folder of the table in the warehouse. Unlike `exists`, this starts no thread."""
    return (warehouse / table.name).is_dir()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """A version of a table: Delta's table id, the version number and the version's files, if they are in a folder."""

    table: Table
    table_id: str
    version: int
    files: frozenset[str]

    @classmethod
    def of(cls, warehouse: Path, table: Table, version: int | None = None) -> TableVersion | None:
        """Return the given version, or the newest one; None if it does not exist or was removed."""
        path = table_path(warehouse, table)
        if isinstance(path, TableName):
            return cls._named(path, table)
        if not DeltaTable.is_deltatable(path):
            return None
        try:
            found = DeltaTable(path, version=version)
        except DeltaError:
            return None
        files = frozenset(local(uri) for uri in found.file_uris())
        return cls(table=table, table_id=str(found.metadata().id), version=found.version(), files=files)

    @classmethod
    def _named(cls, name: TableName, table: Table) -> TableVersion | None:
        found = named_tables.stored(name)
        if found is None:
            return None
        number = named_tables.version(name)
        return cls(table=table, table_id=found.table_id, version=number, files=frozenset())


def oldest_version(warehouse: Path, table: Table) -> int:
    """Return the oldest version in the log of a table; 0 if it has no log."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return named_tables.first_version(path)
    commits = [int(each.stem) for each in Path(path, "_delta_log").glob("*.json") if each.stem.isdigit()]
    return min(commits, default=0)


def has_commit(warehouse: Path, table: Table, version: int) -> bool:
    """Return whether the log of a table in a folder has the commit of a version."""
    return commit_of(Path(table_path(warehouse, table), "_delta_log"), version).exists()


def follows(warehouse: Path, table: Table, before: int, now: int, *, commits: int = 0) -> bool:
    """Return whether that many commits between two versions of a table in a folder changed rows.

    All others must have left the rows as they were, as compaction does.
    """
    if now - before <= commits:
        return now - before == commits
    changed = (not _is_compaction(table_path(warehouse, table), version) for version in range(before + 1, now + 1))
    return sum(changed) == commits


def _is_compaction(path: str, version: int) -> bool:
    commit = actions(path, version)
    files = (action.get("add") or action.get("remove") for action in commit or ())
    return commit is not None and all(file is None or not file["dataChange"] for file in files)


def commits_after(warehouse: Path, table: Table, version: int) -> tuple[int, Sequence[Mapping[str, Any]]]:
    """Return the newest version of a table, and the commits after `version`, newest first, as Delta describes them."""
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        return named_tables.version(path), [commit.asDict() for commit in named_tables.commits_after(path, version)]
    newest = DeltaTable(path)
    return newest.version(), newest.history(newest.version() - version)
