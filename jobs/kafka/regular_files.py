"""Files that a user names: only regular ones are opened."""

from __future__ import annotations

import os
import stat
from typing import IO, TYPE_CHECKING

from jobs.config.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path


def open_regular(path: Path, kind: str, *, if_missing: str, if_other: str) -> IO[bytes]:
    """Open a regular file, also through a symbolic link, as rotation makes them.

    Args:
        path: the file.
        kind: what it is called in an error, such as "log file".
        if_missing: what to do if there is no such file.
        if_other: what to do if it is a pipe, a folder or a device.

    Raises:
        UserError: the file is missing, may not be read or is no regular file.
    """
    try:
        # O_NONBLOCK: a named pipe without a writer would let `open` wait for ever.
        stream = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb")
    except FileNotFoundError:
        raise UserError(f"There is no {kind} {path}: {if_missing}.") from None
    except OSError as error:
        raise UserError(f"The {kind} {path} cannot be read ({error.strerror}): let this user read it.") from None
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise UserError(f"The {kind} {path} is no regular file: {if_other}.")
    return stream
