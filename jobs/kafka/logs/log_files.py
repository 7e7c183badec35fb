"""Lines of log files that grow, are rotated and are truncated."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from jobs.config.errors import UserError
from jobs.kafka.logs.joined_lines import MAX_LINE_BYTES, RawLine, joined
from jobs.kafka.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_BYTES = 256
"""Bytes at the start of a file that identify it among files with the same name and inode."""

RENAMED = re.compile(r"[.-][0-9][0-9TZ._-]*")
"""What log4j and logrotate append to the name of a file when they rename it. A compressed file has more after it."""


class FileLine(NamedTuple):
    """A line of a log file. `line_no` counts from 1. An oversized line is cut off and belongs in quarantine."""

    source_id: str
    line_no: int
    line: str
    is_oversized: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """The place to continue: the byte after the last complete line, in the file that begins with `head`.

    `head` is a hash of the first `min(offset, HEAD_BYTES)` bytes. `line_no` continues across rotations, so the pair of
    file name and line number stays unique.
    """

    inode: int
    offset: int
    line_no: int
    head: str

    def to_json(self) -> dict[str, int | str]:
        return asdict(self)


class Follower:
    """Reads the lines added to a file since its beginning or since a saved position.

    A line is complete when its newline has arrived. Bytes that are not UTF-8 are replaced. After a rotation, the rest
    of the renamed file is read first, from the open file or, after a restart, from the renamed file in the same folder.
    Then files that were renamed since are read, which are there if nobody read for more than one rotation, and the new
    file, each from its beginning. A file that is shorter or begins differently is read from its beginning. Lines that
    belong together are one line (`jobs.kafka.logs.joined_lines`).
    """

    def __init__(self, path: Path, position: FilePosition | None = None, source_id: str | None = None) -> None:
        self.path = path
        self._source_id = source_id or path.name
        self._line_no = position.line_no if position else 0
        self._offset = 0
        self._stream = self._resume(position)
        self._begin = _begin(self._stream, self._offset)

    def _resume(self, position: FilePosition | None) -> IO[bytes]:
        stream = _open(self.path)
        if position is None:
            return stream
        # The renamed file comes first, because its remaining lines are older than the new file.
        try:
            renamed = [Path(each.path) for each in _renamed(self.path) if each.inode() == position.inode]
        except UserError:
            stream.close()
            raise
        candidates = [*map(_open, renamed), stream]
        chosen = next((s for s in candidates if _is_at(s, position)), stream)
        for other in candidates:
            if other is not chosen:
                other.close()
        self._offset = position.offset if _is_at(chosen, position) else 0
        return chosen

    @property
    def position(self) -> FilePosition:
        """Return the position after the last line that `poll` returned."""
        return FilePosition(
            inode=os.fstat(self._stream.fileno()).st_ino,
            offset=self._offset,
            line_no=self._line_no,
            head=_head(self._begin),
        )

    def poll(self, most: int = 10_000) -> list[FileLine]:
        """Return at most `most` new lines; none if there are none now."""
        lines = list(self._gained(most))
        while len(lines) < most and self._is_replaced():
            lines += self._gained(most - len(lines), is_finished=True)
            if len(lines) < most:
                following = self._following()
                self._stream.close()
                self._stream, self._offset, self._begin = _open(following), 0, b""
                lines += self._gained(most - len(lines))
        return lines

    def close(self) -> None:
        self._stream.close()

    def _gained(self, most: int, *, is_finished: bool = False) -> Iterator[FileLine]:
        size = os.fstat(self._stream.fileno()).st_size
        # A file that was truncated may have grown beyond the old position since.
        if size < self._offset or _begin(self._stream, len(self._begin)) != self._begin:
            self._offset, self._begin = 0, b""
        self._stream.seek(self._offset)
        for _, line in zip(range(most), joined(_raw_lines(self._stream)), strict=False):
            if not (line.is_whole or is_finished):
                return
            self._offset += line.size
            self._line_no += 1
            if len(self._begin) < HEAD_BYTES:
                self._begin = _begin(self._stream, self._offset)
            text = line.text[:MAX_LINE_BYTES].decode("utf-8", "replace")
            yield FileLine(self._source_id, self._line_no, text, line.is_cut)

    def _following(self) -> Path:
        """Return the file after this one: the oldest one that was renamed and written later, or else the new file."""
        mine = os.fstat(self._stream.fileno())
        try:
            entries = _renamed(self.path)
        except UserError:
            return self.path  # The new file can be read without this permission.
        renamed = [
            (_modified_ns(each), each.path)
            for each in entries
            if RENAMED.fullmatch(each.name.removeprefix(self.path.name)) and each.is_file(follow_symlinks=False)
        ]
        later = [each for each in renamed if each[0] > mine.st_mtime_ns]
        return Path(min(later)[1]) if later else self.path

    def _is_replaced(self) -> bool:
        try:
            now = self.path.stat()
        except OSError:
            return False  # between the renaming and the new file
        mine = os.fstat(self._stream.fileno())
        return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino)


def _raw_lines(stream: IO[bytes]) -> Iterator[RawLine]:
    while line := stream.readline(MAX_LINE_BYTES + 1):
        size, last = len(line), line
        while not last.endswith(b"\n") and (last := stream.readline(MAX_LINE_BYTES)):
            size += len(last)
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        yield RawLine(text, size, last.endswith(b"\n"), size > MAX_LINE_BYTES + 1)


def _begin(stream: IO[bytes], offset: int) -> bytes:
    """Return the first bytes of a file, of those before `offset`."""
    return os.pread(stream.fileno(), min(offset, HEAD_BYTES), 0)


def _head(begin: bytes) -> str:
    return hashlib.sha256(begin).hexdigest()[:16]


def _is_at(stream: IO[bytes], position: FilePosition) -> bool:
    size = os.fstat(stream.fileno()).st_size
    return size >= position.offset and _head(_begin(stream, position.offset)) == position.head


def _renamed(path: Path) -> list[os.DirEntry[str]]:
    """Return what may be renamed files: their names start with `path`'s name, as log4j and logrotate name them.

    Raises:
        UserError: this user may not list the folder.
    """
    try:
        with os.scandir(path.parent) as entries:
            return [each for each in entries if each.name.startswith((f"{path.name}.", f"{path.name}-"))]
    except OSError as error:
        raise UserError(
            f"The folder {path.parent} cannot be listed for renamed files of the log {path.name} ({error.strerror}): "
            "let this user read the folder."
        ) from None


def _modified_ns(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except FileNotFoundError:
        return 0  # deleted since it was listed


def _open(path: Path) -> IO[bytes]:
    missing, other = "correct the path, or wait until the broker has created it", "name the file that the broker writes"
    return open_regular(path, "log file", if_missing=missing, if_other=other)
