"""Tables as they were at one moment, for who reads several of them while others write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from deltalake import DeltaTable

from jobs.tables.delta_io import table_path
from schemas.tables import Table

Versions = Mapping[str, int]
"""By a table's name."""

KEPT = 100
"""Opened tables; one warehouse has a quarter of them."""


class _Known(NamedTuple):
    """A table as it was opened last, and its log folder before that: which one it was and when it changed."""

    folder: int
    changed_ns: int
    table: DeltaTable

    def is_still(self, log: Path, version: int | None) -> bool:
        """Whether it is the same table still, of the version that was named or else of the newest."""
        told = log.stat()
        if self.folder != told.st_ino:
            return False
        if version is not None:
            return self.table.version() == version
        # What comes within the same tick of the clock does not change the folder's time.
        is_newest = not (log / f"{self.table.version() + 1:020}.json").exists()
        return self.changed_ns == told.st_mtime_ns and is_newest


_known: dict[tuple[str, bool], _Known] = {}
"""By path and whether a version was named: one that was is not taken for the newest, and of these the last is kept."""

_versions: ContextVar[Versions] = ContextVar("versions", default={})  # noqa: B039 - nobody changes it


def versions(warehouse: str | Path, tables: Iterable[Table]) -> Versions:
    """The versions of these tables as they stand."""
    return {table.name: opened(warehouse, table).version() for table in tables}


@contextmanager
def as_of(seen: Versions) -> Iterator[None]:
    """Herein these tables are read as they were in these versions, by `opened`; all others as they stand."""
    token = _versions.set(seen)
    try:
        yield
    finally:
        _versions.reset(token)


def opened(warehouse: str | Path, table: Table) -> DeltaTable:
    """The table, to read its rows; nobody changes what is returned.

    To open one takes 10 ms of a core, and a batch asks tens of times of tables that it changes once.
    """
    path, version = table_path(warehouse, table), _versions.get().get(table.name)
    log = Path(path, "_delta_log")
    if not log.exists():
        return DeltaTable(path, version=version)
    key = path, version is not None
    known = _known.get(key)
    if known is None or not known.is_still(log, version):
        told = log.stat()
        known = _Known(told.st_ino, told.st_mtime_ns, DeltaTable(path, version=version))
        if len(_known) >= KEPT:
            _known.clear()
        _known[key] = known
    return known.table
