"""Commits to one table by several jobs: with locks if needed, and retried if another commit came first.

If two commits change the same rows, Delta lets one succeed. If a commit replaces rows, Delta treats any append as a
conflict (`Serializable`, the only isolation level outside Databricks). So a commit that failed once continues with an
exclusive lock. The other writers share the table's lock, and wait. Tables elsewhere (`location`), and file systems
without locks, have only the retries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from random import uniform
from typing import TypeVar

from deltalake import DeltaTable

from jobs.tables.conflicts import CONFLICTS
from jobs.tables.disk.durability import on_disk
from jobs.tables.disk.hard_links import has_hard_links
from jobs.tables.disk.write_lock import write_lock
from jobs.tables.paths import TableName

TRIES = 6
PAUSE_SECONDS = 1.0

T = TypeVar("T")


def is_local(path: str) -> bool:
    """Return whether deltalake writes the table at `path`.

    It cannot if the table is clustered, is not in a folder, or if the file system has no hard links, as a volume of
    Databricks.
    """
    if isinstance(path, TableName):
        return False
    return has_hard_links(Path(path).parent) and _is_unclustered(path, Path(path, "_delta_log").stat().st_ino)


@lru_cache(maxsize=1_000)
def _is_unclustered(path: str, _log: int) -> bool:
    """Return whether the table is unclustered. Cached: a table never changes its features, and a new one has a new
    inode.
    """
    return "clustering" not in (DeltaTable(path).protocol().writer_features or ())


@contextmanager
def table_lock(path: str, *, alone: bool = False) -> Iterator[None]:
    """Hold the lock of the table at `path` for writing: shared, or exclusive with `alone`.

    At the end, all commits are flushed to the disk. Spark always needs the exclusive lock: on a local disk its commit
    may overwrite a simultaneous commit from outside its JVM (Delta's LocalLogStore).
    """
    if isinstance(path, TableName):
        yield
        return
    with write_lock(Path(path), alone=alone), on_disk(path):
        yield


def retry_commit(path: str, act: Callable[[], T], *, alone: bool = False) -> T:
    """Run `act`, which commits to the table at `path`, and return its result. Retry it after a conflict.

    `act` must read the table again at each call. The lock is that of `table_lock`, and exclusive after a conflict.

    Raises:
        Exception: one of `CONFLICTS`, if other commits came first each time.
    """
    for attempt in range(TRIES - 1):
        try:
            with table_lock(path, alone=alone or attempt > 0):
                return act()
        except CONFLICTS:
            # A random pause, because without locks two jobs would otherwise keep colliding.
            time.sleep(uniform(0, PAUSE_SECONDS) * attempt)  # noqa: S311 - no secret
    with table_lock(path, alone=True):
        return act()
