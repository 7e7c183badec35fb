"""The one exception that reaches a person: its text is the whole message; and what is told of any other."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ERROR_LENGTH = 300

FULL = "No space left on device"
NO_SPACE = 1 << 20
"""Bytes that are as good as none: what was half written has been removed again."""


class UserError(Exception):
    """A foreseeable mistake or missing thing, told in one sentence that names it and the next step.

    The command line prints the sentence, without a traceback, and exits with 2.
    """


def first_line(error: Exception) -> str:
    """What an error of others says, as one line of at most `ERROR_LENGTH` characters."""
    return (str(error) or type(error).__name__).splitlines()[0][:ERROR_LENGTH]


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
