"""The Delta tables of an object store: their versions as deltalake reads them, with limits of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError

from dashboards.lake.address import ObjectStore
from dashboards.lake.delta_files import complete_schema
from dashboards.lake.errors import LakeError, is_object_missing, store_error
from dashboards.lake.store_source import SmallFiles, StoreSource
from schemas.tables import schema_version

LIMITS = {"connect_timeout": "5s", "timeout": "20s", "max_retries": "2", "retry_timeout": "10s"}
"""Options of deltalake, which otherwise tries ten times within three minutes. Credentials come from the environment."""

FRESH_SECONDS = 10.0
"""Looking for newer versions takes a request per table."""

FAILED_SECONDS = 5.0
"""After a failure, requests that waited for it get the same sentence, instead of each waiting as long for its own."""

AT_ONCE = 32
"""Requests at once, enough for all tables. One takes 20-50 ms in the stores of a cloud, however little it asks for."""


@dataclass(slots=True)
class _OpenTable:
    table: DeltaTable
    source: StoreSource | None = None
    changed_at: tuple[int, int] | None = None


class StoreFiles:
    """The tables below an address, like `dashboards.lake.delta_files.DeltaFiles` for a folder. Not thread-safe.

    Arrow's threads read through Python code. A process that uses this class must therefore end with `os._exit`, as
    `dashboards.app.serve` does: after a query, threads that read ahead abort the interpreter's shutdown.

    All methods raise `LakeError` if the store cannot be read. That a table was deleted, or created again, is noticed
    once a query needs a former file that is not kept in memory.
    """

    def __init__(self, store: ObjectStore, names: Iterable[str], fresh_seconds: float) -> None:
        self._store = store
        self._names = tuple(names)
        self._fresh_seconds = fresh_seconds
        self._checked_at: dict[str, float] = {}
        self._open: dict[str, _OpenTable] = {}
        self._failed: tuple[float, LakeError] | None = None
        self._executor = ThreadPoolExecutor(AT_ONCE, "object store")
        self._small_files = SmallFiles(self._executor)

    def versions(self) -> Mapping[str, int]:
        self._refresh(self._names)
        return {name: open_.table.version() for name, open_ in self._open.items()}

    def changed_at(self) -> Mapping[str, int]:
        try:
            return dict(zip(self._open, self._executor.map(_changed_at, self._open.values()), strict=True))
        except (DeltaError, OSError) as error:
            raise store_error(self._store, error) from None

    def source(self, name: str) -> StoreSource | None:
        """Return the newest version; None if the table does not exist."""
        # A page needs many tables, and checking all of them at once takes as long as checking one.
        self._refresh(self._names if self._fresh_seconds else (name,))
        open_ = self._open.get(name)
        if open_ is None:
            return None
        if open_.source is None or open_.source.version != open_.table.version():
            try:
                open_.source = self._read(name, open_.table)
            except DeltaProtocolError:
                raise LakeError(
                    f"The table {name} uses deletion vectors, column mapping or another feature that the pages cannot "
                    "read in an object store: read it through a Databricks SQL warehouse, or write it without them."
                ) from None
            except (DeltaError, OSError) as error:
                raise store_error(self._store, error) from None
        return open_.source

    def is_outdated(self, error: Exception) -> bool:
        """Return whether a query failed because files of the open version were deleted."""
        return is_object_missing(error)

    def forget(self, name: str) -> None:
        """Reopen the table at its next use."""
        self._open.pop(name, None)
        self._checked_at.pop(name, None)

    def _refresh(self, names: Iterable[str]) -> None:
        """Read newer versions, unless the table was checked within `fresh_seconds`."""
        due = [name for name in names if monotonic() - self._checked_at.get(name, float("-inf")) >= self._fresh_seconds]
        try:
            for name, open_ in zip(due, self._executor.map(self._newest, due), strict=True):
                if open_ is None:
                    self.forget(name)
                else:
                    self._open[name] = open_
                self._checked_at[name] = monotonic()
            self._failed = None
        except (DeltaError, OSError) as error:
            self._failed = monotonic(), store_error(self._store, error)
            raise self._failed[1] from None

    def _newest(self, name: str) -> _OpenTable | None:
        """Return the table as it is now; None if it is missing."""
        open_ = self._open.get(name)
        if open_ is not None:
            try:
                open_.table.update_incremental()
            except (DeltaError, OSError) as error:
                # Files of the log that this version continues were deleted: open the table anew.
                if not is_object_missing(error) and not isinstance(error, DeltaError):
                    raise
            else:
                return open_
        try:
            return _OpenTable(DeltaTable(self._store.url(name), storage_options=LIMITS))
        except TableNotFoundError:
            return None

    def _read(self, name: str, table: DeltaTable) -> StoreSource:
        schema = complete_schema(name, table)
        added = pa.table(table.get_add_actions())
        sizes = dict(zip(map(unquote, added["path"].to_pylist()), added["size_bytes"].to_pylist(), strict=True))
        # Only the file system and the paths are used: Delta's statistics of times are cut to milliseconds.
        dataset = table.to_pyarrow_dataset(schema=schema)
        files = tuple(dataset.files)
        self._small_files.drop_others(name, files)
        return StoreSource(
            version=table.version(),
            schema_version=schema_version(table.metadata().configuration),
            files=files,
            schema=schema,
            table=name,
            system=dataset.filesystem,
            sizes={file: sizes[unquote(file)] for file in files if unquote(file) in sizes},
            small_files=self._small_files,
        )


def _changed_at(open_: _OpenTable) -> int:
    version = open_.table.version()
    if open_.changed_at is None or open_.changed_at[0] != version:
        open_.changed_at = version, int(open_.table.history(1)[0]["timestamp"])
    return open_.changed_at[1]
