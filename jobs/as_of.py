"""Tables as they were at one moment, for who reads several of them while others write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from deltalake import DeltaTable

from jobs.delta_io import table_path
from schemas.tables import Table

Versions = Mapping[str, int]
"""By a table's name."""

_versions: ContextVar[Versions] = ContextVar("versions", default={})  # noqa: B039 - nobody changes it


def versions(warehouse: str | Path, tables: Iterable[Table]) -> Versions:
    """The versions of these tables as they stand."""
    return {table.name: DeltaTable(table_path(warehouse, table)).version() for table in tables}


@contextmanager
def as_of(seen: Versions) -> Iterator[None]:
    """Herein these tables are read as they were in these versions, by `opened`; all others as they stand."""
    token = _versions.set(seen)
    try:
        yield
    finally:
        _versions.reset(token)


def opened(warehouse: str | Path, table: Table) -> DeltaTable:
    """The table, to read its rows."""
    return DeltaTable(table_path(warehouse, table), version=_versions.get().get(table.name))
