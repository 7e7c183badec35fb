"""The untrusted files of a capture folder: only regular files are opened, and their total size is limited."""

from __future__ import annotations

import os
import re
import stat
import zlib
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader, RawIOBase
from typing import IO, TYPE_CHECKING, Any

from jobs.config.errors import UserError
from pipelines.limits import CAPTURE_MB
from schemas.visible import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MB = 1_000_000
FILE_COST = 1_000
"""Bytes charged per file name in the folder and per member of a gzip file, for their processing time."""

LINE_COST = 300
"""Bytes charged per line in addition to its text."""

PIECE = 1 << 16
PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
NEXT = "replace it with the regular file that was recorded"
UTF8_MARK, UTF16_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(slots=True)
class Budget:
    """The memory that a capture may take, in MB. Each source has its own account, so that it can be read again."""

    folder: Path
    limit_mb: int
    _spent: dict[str, int] = field(default_factory=dict)

    def reset(self, account: str) -> None:
        self._spent[account] = 0

    def spend(self, account: str, amount: int, position: str) -> None:
        """Charge `amount` bytes.

        Raises:
            UserError: the limit is reached; `position` says where.
        """
        self._spent[account] = self._spent.get(account, 0) + amount
        if sum(self._spent.values()) > self.limit_mb * MB:
            raise UserError(
                f"The capture {self.folder} needs more than {self.limit_mb} MB of memory (reached at {position}): if "
                "you trust its sender and this machine has the memory, raise capture_mb in the settings."
            )


class CaptureFiles:
    """A capture folder. It is held open, so that it cannot be replaced while it is read.

    Raises:
        UserError: the folder is missing or not readable, or it is a symbolic link or not a folder.
    """

    def __init__(self, folder: Path, limit_mb: int = CAPTURE_MB) -> None:
        self.folder = folder
        self.budget = Budget(folder, limit_mb)
        try:
            self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise UserError(f"There is no capture folder {folder}: correct the path.") from None
        except (OSError, ValueError) as error:
            why = "a symbolic link" if folder.is_symlink() else _reason(error)
            raise UserError(f"{folder} is not a capture folder ({why}): name the folder itself.") from None

    def __del__(self) -> None:
        if (fd := getattr(self, "_fd", None)) is not None:
            os.close(fd)

    def names(self, beginning: str, part: str) -> list[str]:
        """Return the sorted names of files that start with `beginning` and contain `part` after it.

        Raises:
            UserError: there are too many files, a found name has other characters than letters, digits, `.`, `_`
                and `-`, or a found file exists both compressed and uncompressed.
        """
        self.budget.reset("names")
        found = []
        with os.scandir(self._fd) as entries:
            for entry in entries:
                self.budget.spend("names", FILE_COST, "the number of its files")
                if entry.name.startswith(beginning) and part in entry.name[len(beginning) :]:
                    found.append(entry.name)
        for name in found:
            if not PLAIN_NAME.fullmatch(name):
                raise UserError(
                    f"The capture {self.folder} has a file with an unusual name ({visible_text(name)[:200]}): rename "
                    "it with letters, digits, dots and hyphens."
                )
            if f"{name}.gz" in found:
                raise UserError(f"The capture {self.folder} has both {name} and {name}.gz: keep one of them.")
        return sorted(found)

    def open(self, name: str, account: str) -> IO[bytes]:
        """Open a regular file, unpacked if its name ends in `.gz`. The caller charges the bytes that it reads.

        Raises:
            FileNotFoundError: there is no file of this name.
            UserError: it is not a regular file, not readable or too large.
        """
        stream = self.open_as_it_is(name)
        self.budget.spend(account, FILE_COST, name)
        if not name.endswith(".gz"):
            return stream
        return BufferedReader(_Unpacked(stream, self.folder / name, partial(self.budget.spend, account)), PIECE)

    def open_as_it_is(self, name: str) -> IO[bytes]:
        """Open a regular file without unpacking it or charging it; raises as `open` does."""
        path = self.folder / name
        try:
            # O_NONBLOCK: otherwise `open` would wait forever for the writer of a named pipe.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            stream = os.fdopen(os.open(name, flags, dir_fd=self._fd), "rb", buffering=PIECE)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise UserError(f"The file {path} cannot be read ({self._kind(name) or _reason(error)}): {NEXT}.") from None
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            stream.close()
            raise UserError(f"The file {path} cannot be read ({self._kind(name) or 'not a regular file'}): {NEXT}.")
        return stream

    def read(self, name: str, account: str) -> bytes:
        """Return the whole content of a file; raises as `open` does."""
        with self.open(name, account) as stream:
            found = stream.read(self.budget.limit_mb * MB + 1)
        self.budget.spend(account, len(found), name)
        return found

    def _kind(self, name: str) -> str | None:
        try:
            mode = os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_mode
        except OSError:
            return None
        return next((text for is_kind, text in KINDS if is_kind(mode)), None)

    def lines(self, name: str, account: str, longest: int) -> Iterator[tuple[bytes, bool]]:
        """Yield every line without its line end, and whether it was cut after `longest` bytes.

        A byte order mark at the start is removed.

        Raises:
            UserError: as `open` does, and for an invalid gzip file or UTF-16.
        """
        with self.open(name, account) as stream:
            is_first = True
            while line := stream.readline(longest + 1):
                size, last = len(line), line
                self.budget.spend(account, size + LINE_COST, name)
                while not last.endswith(b"\n") and (last := stream.readline(PIECE)):
                    self.budget.spend(account, len(last), name)
                    size += len(last)
                if is_first and line.startswith(UTF16_MARKS):
                    raise UserError(f"The file {self.folder / name} is UTF-16: convert it to UTF-8.")
                text = line.removeprefix(UTF8_MARK) if is_first else line
                is_first = False
                text = text.removesuffix(b"\n").removesuffix(b"\r")
                yield text[:longest], size > longest + 1


class _Unpacked(RawIOBase):
    """The content of a gzip file, read in pieces. Compressed bytes and gzip members are charged."""

    def __init__(self, packed: IO[bytes], path: Path, spend: Callable[[int, str], None]) -> None:
        self._packed, self._path, self._spend = packed, path, spend
        self._member = zlib.decompressobj(wbits=31)
        self._rest = b""
        self._is_in_member = False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._packed.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._piece(len(buffer))
        except zlib.error:
            piece = None
        if piece is None:
            raise UserError(f"The file {self._path} is not a valid gzip file: copy it again.")
        buffer[: len(piece)] = piece
        return len(piece)

    def _piece(self, most: int) -> bytes | None:
        """Return some bytes; empty at the end; None if the file ends within a member."""
        while True:
            if not self._rest:
                self._rest = self._packed.read(PIECE)
                self._spend(len(self._rest), self._path.name)
            if not self._rest:
                return None if self._is_in_member else b""
            if not self._is_in_member:
                self._rest = self._rest.lstrip(b"\0")  # zero padding between members
                if not self._rest:
                    continue
                self._member, self._is_in_member = zlib.decompressobj(wbits=31), True
                self._spend(FILE_COST, self._path.name)
            piece = self._member.decompress(self._rest, most)
            self._rest = self._member.unconsumed_tail
            if self._member.eof:
                self._rest, self._is_in_member = self._member.unused_data, False
            if piece:
                return piece


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
