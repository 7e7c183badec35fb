"""Tables as they were at one time, for readers of several tables while others write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable

from jobs.tables import named_tables
from jobs.tables.disk.table_log import commit_of
from jobs.tables.paths import TableName, table_path
from schemas.tables import Table

Versions = Mapping[str, int]
"""Versions by table name."""

KEPT = 100
"""Number of opened tables to cache. One warehouse has a quarter of that."""


class _Known(NamedTuple):
    """A table as it was last opened, and the inode and modification time of its log folder before that."""

    folder: int
    changed_ns: int
    table: DeltaTable

    def is_still(self, log: Path, version: int | None) -> bool:
        """Return whether this is still the same table in the given version, or without one in the newest version."""
        stat = log.stat()
        if self.folder != stat.st_ino:
            return False
        if version is not None:
            return self.table.version() == version
        # Checked as well, because a commit within the same clock tick does not change the folder's time.
        is_newest = not commit_of(log, self.table.version() + 1).exists()
        return self.changed_ns == stat.st_mtime_ns and is_newest


_known: dict[tuple[str, bool], _Known] = {}
"""Cached tables by path and whether a version was given. A table with a given version never counts as the newest.

Only the last table of each key is kept.
"""

_versions: ContextVar[Versions] = ContextVar("versions", default={})  # noqa: B039 - never changed


def versions(warehouse: str | Path, tables: Iterable[Table]) -> Versions:
    """Return the current versions of these tables."""
    return {table.name: _version(warehouse, table) for table in tables}


def _version(warehouse: str | Path, table: Table) -> int:
    path = table_path(warehouse, table)
    return named_tables.version(path) if isinstance(path, TableName) else opened(warehouse, table).version()


def version_of(table: Table) -> int | None:
    """Return the version in which this block of `as_of` sees the table; None for the newest."""
    return _versions.get().get(table.name)


@contextmanager
def as_of(seen: Versions) -> Iterator[None]:
    """Within the block, `opened` returns these tables in these versions, and others in their newest version."""
    token = _versions.set(seen)
    try:
        yield
    finally:
        _versions.reset(token)


def opened(warehouse: str | Path, table: Table) -> DeltaTable:
    """Return the table in a folder for reading its rows. Callers must not change it.

    Cached, because opening takes 10 ms of a core, and a batch opens tables tens of times that it changes once.
    """
    return _opened(table_path(warehouse, table), version_of(table))


def newest_of(path: str) -> DeltaTable:
    """Return the newest version of the table in the folder `path`, for reading, or for a commit that must follow it.

    A commit leaves the returned table as it was. `as_of` does not affect it.
    """
    return _opened(path, None)


def _opened(path: str, version: int | None) -> DeltaTable:
    log = Path(path, "_delta_log")
    if not log.exists():
        return DeltaTable(path, version=version)
    key = path, version is not None
    known = _known.get(key)
    if known is None or not known.is_still(log, version):
        stat = log.stat()
        known = _Known(stat.st_ino, stat.st_mtime_ns, DeltaTable(path, version=version))
        if len(_known) >= KEPT:
            _known.clear()
        _known[key] = known
    return known.table


def opened_version(warehouse: str | Path, table: Table) -> tuple[str, int]:
    """Return the id of the table that `opened` returns, and its version."""
    stored = opened(warehouse, table)
    return str(stored.metadata().id), stored.version()
