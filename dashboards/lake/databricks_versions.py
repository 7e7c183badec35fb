"""The current version of each table of a Databricks schema, read in the background."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import monotonic
from typing import NamedTuple

from dashboards.lake.databricks_connection import Connections, is_absent
from dashboards.lake.lake import LakeError, milliseconds
from dashboards.lake.sql_names import quoted, source
from schemas.tables import schema_version

AT_ONCE = 4
WAITED_FOR = 3
"""Versions older than this multiple of `fresh_seconds` are not used; the caller waits for new ones."""

SCHEMA_SECONDS = 300.0
"""Interval between reads of a table's schema version, which changes only when a job of another Regroup starts."""


class WarehouseVersion(NamedTuple):
    """A table's newest version number, its time, and the schema version of the Regroup that writes the table.

    The number of a recreated table starts again at 0.
    """

    number: int
    changed_at: int
    schema_version: int


class Versions:
    """The versions of the existing tables. `get` reads them again if they are older than `fresh_seconds`."""

    def __init__(self, connections: Connections, location: str, names: Iterable[str], fresh_seconds: float) -> None:
        self._connections = connections
        self._location = location
        self._names = tuple(names)
        self._fresh_seconds = fresh_seconds
        self._pool = ThreadPoolExecutor(1 + AT_ONCE, thread_name_prefix="versions")
        self._lock = Lock()
        self._versions: Mapping[str, WarehouseVersion] = {}
        self._schema_versions: dict[str, tuple[float, int]] = {}
        self._failed: Exception | None = None
        self._checked_at = float("-inf")
        self._underway: Future[None] | None = None

    def get(self) -> Mapping[str, WarehouseVersion]:
        """Return the versions by table. Raises `LakeError` if the last read failed."""
        with self._lock:
            age = monotonic() - self._checked_at
            if self._underway is None and age >= self._fresh_seconds:
                self._underway = self._pool.submit(self._refresh)
            underway = self._underway
        if underway is not None and age >= WAITED_FOR * self._fresh_seconds:
            underway.result()
        with self._lock:
            if self._failed is not None:
                raise self._failed.with_traceback(None)
            return self._versions

    def renewed(self) -> Mapping[str, WarehouseVersion]:
        """Return the versions from a new read."""
        with self._lock:
            self._checked_at = float("-inf")
        return self.get()

    def _refresh(self) -> None:
        found: Mapping[str, WarehouseVersion] = {}
        failed: Exception | None = None
        try:
            results = zip(self._names, self._pool.map(self._newest, self._names), strict=True)
            found = {name: version for name, version in results if version is not None}
            if not found and "/" not in self._location:
                # Without this statement, a missing schema would look like an empty one.
                self._connections.ask(f"DESCRIBE SCHEMA {quoted(*self._location.split('.'))}", {})
        except Exception as error:  # noqa: BLE001 - raised again in `get`
            failed = error
        with self._lock:
            self._versions, self._failed, self._checked_at, self._underway = found, failed, monotonic(), None

    def _newest(self, name: str) -> WarehouseVersion | None:
        """Return the newest version; None if there is no such table."""
        try:
            response = self._connections.ask(f"DESCRIBE HISTORY {source(self._location, name)} LIMIT 1", {})
            written = self._written(name)
        except LakeError as error:
            if is_absent(error):
                return None
            raise
        (newest,) = milliseconds(response.select(["version", "timestamp"])).to_pylist()
        return WarehouseVersion(newest["version"], newest["timestamp"], written)

    def _written(self, name: str) -> int:
        asked_at, written = self._schema_versions.get(name, (float("-inf"), 0))
        if monotonic() - asked_at >= SCHEMA_SECONDS:
            response = self._connections.ask(f"DESCRIBE DETAIL {source(self._location, name)}", {})
            written = schema_version(dict(response["properties"][0].as_py()))
            self._schema_versions[name] = monotonic(), written
        return written
