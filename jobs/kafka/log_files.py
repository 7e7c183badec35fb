"""Lines of log files that grow, are rotated and are truncated."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from jobs.kafka.regular_files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_LINE_BYTES = 65_536
"""Highest length of a kept line. Lifecycle lines are shorter, because ids have at most 32,767 bytes each."""

HEAD_BYTES = 256
"""Bytes at the start of a file that identify it among files with the same name and inode."""

CRI_PART = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.,Z+-]{8,30} (?P<stream>stdout|stderr) (?P<tag>[FP]) ")
"""Beginning of a line as a CRI container runtime writes it: its time, stream and tag."""


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
    Then the new file is read from its beginning. A file that is shorter or begins differently is read from its
    beginning. The parts of a line that a container runtime split are one line.
    """

    def __init__(self, path: Path, position: FilePosition | None = None, source_id: str | None = None) -> None:
        self.path = path
        self._source_id = source_id or path.name
        self._line_no = position.line_no if position else 0
        self._offset = 0
        self._stream = self._resume(position)

    def _resume(self, position: FilePosition | None) -> IO[bytes]:
        stream = _open(self.path)
        if position is None:
            return stream
        # The renamed file comes first, because its remaining lines are older than the new file.
        candidates = [*(_open(path) for path in _renamed(self.path, position.inode)), stream]
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
            head=_head(self._stream, self._offset),
        )

    def poll(self, most: int = 10_000) -> list[FileLine]:
        """Return at most `most` new lines; none if there are none now."""
        lines = list(self._gained(most))
        while len(lines) < most and self._is_replaced():
            lines += self._gained(most - len(lines), is_finished=True)
            if len(lines) < most:
                self._stream.close()
                self._stream, self._offset = _open(self.path), 0
                lines += self._gained(most - len(lines))
        return lines

    def close(self) -> None:
        self._stream.close()

    def _gained(self, most: int, *, is_finished: bool = False) -> Iterator[FileLine]:
        if os.fstat(self._stream.fileno()).st_size < self._offset:
            self._offset = 0
        self._stream.seek(self._offset)
        for _, (raw, size, is_complete) in zip(range(most), _joined(_raw_lines(self._stream)), strict=False):
            if not (is_complete or is_finished):
                return
            self._offset += size
            self._line_no += 1
            yield _line(self._source_id, self._line_no, raw, size)

    def _is_replaced(self) -> bool:
        try:
            now = self.path.stat()
        except OSError:
            return False  # between the renaming and the new file
        mine = os.fstat(self._stream.fileno())
        return (now.st_dev, now.st_ino) != (mine.st_dev, mine.st_ino)


def _raw_lines(stream: IO[bytes]) -> Iterator[tuple[bytes, int, bool]]:
    """Yield each line without its end (at most MAX_LINE_BYTES + 1 bytes), its bytes, and whether it is whole."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        size, last = len(line), line
        while not last.endswith(b"\n") and (last := stream.readline(MAX_LINE_BYTES)):
            size += len(last)
        is_complete = last.endswith(b"\n")
        yield line.removesuffix(b"\n").removesuffix(b"\r"), size, is_complete


def _joined(lines: Iterable[tuple[bytes, int, bool]]) -> Iterator[tuple[bytes, int, bool]]:
    """Yield the lines with the parts of a line joined that a CRI container runtime split; a joined line counts as one.

    A part has the tag `P`, the last one `F`. A line is not whole before its last part has arrived. Parts are joined if
    they follow each other directly and are of the same stream, up to MAX_LINE_BYTES.
    """
    held: tuple[bytes, int, bytes] | None = None
    for raw, size, is_complete in lines:
        part = CRI_PART.match(raw)
        text, length = raw, size
        if held is not None:
            if part is not None and part["stream"] == held[2]:
                text, length = held[0] + raw[part.end() :], held[1] + size
            else:
                yield held[0], held[1], True
        if part is not None and part["tag"] == b"P" and is_complete and len(text) <= MAX_LINE_BYTES:
            held = text, length, part["stream"]
            continue
        held = None
        yield text, length, is_complete
    if held is not None:
        yield held[0], held[1], False


def _line(source_id: str, number: int, raw: bytes, size: int) -> FileLine:
    is_oversized = size > MAX_LINE_BYTES + 1
    return FileLine(source_id, number, raw[:MAX_LINE_BYTES].decode("utf-8", "replace"), is_oversized)


def _head(stream: IO[bytes], offset: int) -> str:
    return hashlib.sha256(os.pread(stream.fileno(), min(offset, HEAD_BYTES), 0)).hexdigest()[:16]


def _is_at(stream: IO[bytes], position: FilePosition) -> bool:
    size = os.fstat(stream.fileno()).st_size
    return size >= position.offset and _head(stream, position.offset) == position.head


def _renamed(path: Path, inode: int) -> list[Path]:
    """Return the renamed file: it has this inode, and its name starts with `path`'s name, as log4j names it."""
    return [Path(e.path) for e in os.scandir(path.parent) if e.inode() == inode and e.name.startswith(f"{path.name}.")]


def _open(path: Path) -> IO[bytes]:
    missing, other = "correct the path, or wait until the broker has created it", "name the file that the broker writes"
    return open_regular(path, "log file", if_missing=missing, if_other=other)
