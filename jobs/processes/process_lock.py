"""One process at a time does a job on a warehouse, where two would do it twice."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO

from jobs.config.errors import UserError
from jobs.tables.delta_io import checkpoint_path


def lock_file(path: Path, note: str = "") -> TextIO:
    """The file, made if need be, locked until it is closed, as the end of a process does too; it then holds `note`.

    A file system that knows no locks, as of cloud storage, gives it without one: then nobody can tell.

    Raises:
        BlockingIOError: another process has it.
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
    """Keep the job from all other processes of this machine until the file is closed, as the end of a process does too.

    Raises:
        UserError: another process has it.
    """
    path = checkpoint_path(warehouse, job) / "held"
    try:
        return lock_file(path, f"{os.getpid()}\n")
    except BlockingIOError:
        holder = path.read_text(encoding="utf-8").strip() or "unknown"
        raise UserError(
            f"Process {holder} does the work of `{job}` on the warehouse {warehouse} already: stop it first, or leave "
            "it to that."
        ) from None
