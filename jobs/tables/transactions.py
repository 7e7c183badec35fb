"""Commits to one table by several jobs: in turns where need be, and tried again where another one's was first.

Of two commits that touch the same files Delta lets one win, and where a commit replaces rows it takes any append for a
conflict (Delta's `Serializable`, the only level outside Databricks). So who loses once goes on alone: the others, who
hold the table's lock together as they write, wait for him. A file system that knows no locks, as of cloud storage, goes
without: there it is tried again.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from random import uniform
from typing import TypeVar

from delta import exceptions
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from jobs.tables.durability import on_disk

CONFLICTS = (
    exceptions.ConcurrentAppendException,
    exceptions.ConcurrentDeleteDeleteException,
    exceptions.ConcurrentDeleteReadException,
    exceptions.ConcurrentTransactionException,
    exceptions.ConcurrentWriteException,
    exceptions.MetadataChangedException,
    CommitFailedError,
)
"""What Delta raises where another commit was first; they have no common base."""

TRIES = 6
PAUSE_SECONDS = 1.0

T = TypeVar("T")


def is_local(path: str) -> bool:
    """Whether deltalake writes the table at `path`, which it cannot where a table is clustered, as on Databricks.

    Spark then commits to it alone only: on a local disk its commit may overwrite one that comes from outside its JVM at
    the same instant (Delta's LocalLogStore).
    """
    return _is_unclustered(path, Path(path, "_delta_log").stat().st_ino)


@lru_cache(maxsize=1_000)
def _is_unclustered(path: str, _log: int) -> bool:
    """A table keeps its features for as long as it is there; another one of the same name has another log folder."""
    return "clustering" not in (DeltaTable(path).protocol().writer_features or ())


@contextmanager
def table_lock(path: str, *, alone: bool = False, by_spark: bool = False) -> Iterator[None]:
    """Write to the table at `path` herein, beside others who do, or alone; waits for those who write otherwise.

    What was written is on the disk at the end. Spark writes to a table of deltalake's (`is_local`) alone.
    """
    alone = alone or (by_spark and is_local(path))
    lock = Path(path).parent / "_checkpoints" / "turns" / Path(path).name
    with ExitStack() as stack:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        stack.enter_context(on_disk(path))
        yield


def retry_commit(path: str, act: Callable[[], T], *, alone: bool = False, by_spark: bool = False) -> T:
    """What `act` returns, which commits to the table at `path`, sees it as it then stands and may be repeated; with
    `alone`, and where `table_lock` says so of Spark, nobody else writes meanwhile, where there are locks.

    Raises:
        Exception: one of `CONFLICTS`, if others were first each time.
    """
    for attempt in range(TRIES - 1):
        try:
            with table_lock(path, alone=alone or attempt > 0, by_spark=by_spark):
                return act()
        except CONFLICTS:
            # Without locks, two that lose against each other must not go on in step.
            time.sleep(uniform(0, PAUSE_SECONDS) * attempt)  # noqa: S311 - no secret
    with table_lock(path, alone=True):
        return act()
