"""One sentence for a full disk, and a check before a library fails on it with much output."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.config.errors import UserError

FULL = "No space left on device"
NO_SPACE = 1 << 20
"""Free bytes that count as none. Partly written files have already been removed."""


def refuse_full(folder: Path, needed: int = NO_SPACE) -> None:
    """Raise `OSError` if `needed` bytes are not free. Checked first, because a library would panic on a full disk."""
    if folder.is_dir() and shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, FULL, str(folder))


@contextmanager
def full_disk_named(warehouse: Path) -> Iterator[None]:
    """Raise a `UserError` if Spark, Delta or Python find the disk full in the block."""
    try:
        yield
    except Exception as error:
        if FULL not in f"{error} {error.__context__}":
            raise
        folders = [folder for folder in (warehouse, Path(tempfile.gettempdir())) if folder.is_dir()]
        full = [str(folder) for folder in folders if shutil.disk_usage(folder).free < NO_SPACE] or map(str, folders)
        raise UserError(
            f"No space is left on the disk of {' or '.join(full)}: make room and start this command again. It "
            "continues where it stopped."
        ) from None
