"""A full disk: told in one sentence, whoever found it full, and found before what makes much noise of it."""

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
"""Bytes that are as good as none: what was half written has been removed again."""


def refuse_full(folder: Path, needed: int = NO_SPACE) -> None:
    """Raises `OSError` where so many bytes cannot be written, before a library finds that out that panics at it."""
    if folder.is_dir() and shutil.disk_usage(folder).free < needed:
        raise OSError(errno.ENOSPC, FULL, str(folder))


@contextmanager
def full_disk_named(warehouse: Path) -> Iterator[None]:
    """A `UserError` for a full disk, whoever found it full: Spark, Delta or Python."""
    try:
        yield
    except Exception as error:
        if FULL not in f"{error} {error.__context__}":
            raise
        places = [place for place in (warehouse, Path(tempfile.gettempdir())) if place.is_dir()]
        full = [str(place) for place in places if shutil.disk_usage(place).free < NO_SPACE] or map(str, places)
        raise UserError(
            f"No space is left on the disk of {' or '.join(full)}: make room and start this again; it goes on where "
            "it stood."
        ) from None
