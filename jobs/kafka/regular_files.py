"""Files that a user names: only regular files are opened."""

from __future__ import annotations

import os
import stat
from typing import IO, TYPE_CHECKING

from jobs.config.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


def open_regular(path: Path, kind: str, *, if_missing: str, if_other: str) -> IO[bytes]:
    """Open a regular file, also through a symbolic link, because log rotation may use links.

    Args:
        path: the file.
        kind: the name of its kind in an error, such as "log file".
        if_missing: the advice if there is no such file.
        if_other: the advice if it is a pipe, a folder or a device.

    Raises:
        UserError: the file is missing, cannot be read or is not a regular file.
    """
    try:
        # O_NONBLOCK, because opening a named pipe without a writer would block forever.
        stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb")
    except FileNotFoundError:
        raise UserError(f"There is no {kind} {path}: {if_missing}.") from None
    except OSError as error:
        raise UserError(f"The {kind} {path} cannot be read ({error.strerror}): let this user read it.") from None
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise UserError(f"The {kind} {path} is not a regular file: {if_other}.")
    return stream
