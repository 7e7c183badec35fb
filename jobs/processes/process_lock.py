"""Locks that let only one process at a time do a job on a warehouse."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO

from jobs.config.errors import UserError
from jobs.tables.delta_io import checkpoint_path


def lock_file(path: Path, note: str = "") -> TextIO:
    """Open the file, create it if needed, lock it, and write `note` into it.

    The lock lasts until the file is closed or the process ends. A file system without locks, such as cloud storage,
    gives an unlocked file, because another process cannot be detected there.

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
        return file
    file.truncate(0)
    file.write(note)
    file.flush()
    return file


def acquire(warehouse: Path, job: str) -> TextIO:
    """Reserve the job for this process, on this machine, until the file is closed or the process ends.

    Raises:
        UserError: another process does the job.
    """
    path = checkpoint_path(warehouse, job) / "held"
    try:
        return lock_file(path, f"{os.getpid()}\n")
    except BlockingIOError:
        holder = path.read_text(encoding="utf-8").strip() or "unknown"
        raise UserError(
            f"Process {holder} already does the work of `{job}` on the warehouse {warehouse}: stop that process first, "
            "or let it do the work."
        ) from None
