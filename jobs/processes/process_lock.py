"""Locks that let only one process at a time do a job on a warehouse."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO

from jobs.config.errors import UserError
from jobs.processes.lease import Lease, LeaseFile, holder
from jobs.tables.delta_io import checkpoint_path

ProcessLock = TextIO | Lease
"""A lock that lasts until it is closed or the process ends."""


def lock_file(path: Path, note: str = "") -> ProcessLock:
    """Open the file, create it if needed, lock it, and write `note` into it.

    On a file system without locks, a lease beside the file takes its place (`jobs.processes.lease`).

    Raises:
        BlockingIOError: another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    except OSError:
        file.close()
        return Lease(place=_lease(path)).take()
    file.truncate(0)
    file.write(note)
    file.flush()
    return file


def acquire(warehouse: Path, job: str) -> ProcessLock:
    """Reserve the job for this process until the lock is closed or the process ends.

    Raises:
        UserError: another process does the job.
    """
    path = checkpoint_path(warehouse, job) / "held"
    try:
        return lock_file(path, f"{os.getpid()}\n")
    except BlockingIOError:
        raise UserError(
            f"{holding(path)} already does the work of `{job}` on the warehouse {warehouse}: stop that process first, "
            "or let it do the work."
        ) from None


def holding(path: Path) -> str:
    """Return who holds the lock of a file, to begin a sentence with."""
    if _lease(path).path.exists():
        return holder(_lease(path))
    return f"Process {path.read_text(encoding='utf-8').strip() or 'unknown'}"


def _lease(path: Path) -> LeaseFile:
    return LeaseFile(path.with_name(f"{path.name}.lease"))
