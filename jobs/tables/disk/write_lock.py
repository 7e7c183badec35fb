"""The lock of a table in a folder, for all that write to it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def write_lock(table: Path, *, alone: bool = False) -> Iterator[None]:
    """Hold the lock of the table in the folder `table`: shared, or exclusive with `alone`.

    A file system without locks has none.
    """
    lock = table.parent / "_checkpoints" / "turns" / table.name
    with ExitStack() as stack:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
