"""Lines that belong together as one: parts of a container runtime, and JSON printed over several lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_LINE_BYTES = 65_536
"""Highest length of a kept line. Lifecycle lines are shorter, because ids have at most 32,767 bytes each."""

CRI_PART = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.,Z+-]{8,30} (?P<stream>stdout|stderr) (?P<tag>[FP]) ")
"""Beginning of a line as a CRI container runtime writes it: its time, stream and tag."""

FIRST, LAST, INSIDE = b"{", b"}", (b" ", b"\t")
"""The first and the last line of an object as `kubectl -o json` prints it. The lines between them are indented."""


class RawLine(NamedTuple):
    """A line without its end: at most MAX_LINE_BYTES + 1 bytes of it, how many it takes in the file, whether it is
    whole, and whether some of its text is missing.
    """

    text: bytes
    size: int
    is_whole: bool = True
    is_cut: bool = False


def joined(lines: Iterable[RawLine]) -> Iterator[RawLine]:
    """Yield the lines, with those that belong together as one.

    A part of a container runtime has the tag `P`, the last one `F`; parts are joined if they follow each other directly
    and are of the same stream. An object is joined, without its indentation, from the line `{` to the line `}`. If
    another line comes before the last one, what was there is one line. A line is not whole before its last part has
    arrived.
    """
    return _objects(_parts(lines))


def _parts(lines: Iterable[RawLine]) -> Iterator[RawLine]:
    held: tuple[RawLine, bytes] | None = None
    for line in lines:
        part = CRI_PART.match(line.text)
        found = line
        if held is not None:
            before, stream = held
            if part is not None and part["stream"] == stream:
                text = before.text + line.text[part.end() :]
                is_cut = line.is_cut or len(text) > MAX_LINE_BYTES
                found = RawLine(text[: MAX_LINE_BYTES + 1], before.size + line.size, line.is_whole, is_cut)
            else:
                # The beginning of a line does not show yet whether it is a part.
                yield before._replace(is_whole=line.is_whole or part is not None)
        if part is not None and part["tag"] == b"P" and line.is_whole and not found.is_cut:
            held = found, part["stream"]
            continue
        held = None
        yield found
    if held is not None:
        yield held[0]._replace(is_whole=False)


def _objects(lines: Iterable[RawLine]) -> Iterator[RawLine]:
    held: _PrintedObject | None = None
    for line in lines:
        if held is not None:
            is_last = line.text == LAST
            if is_last or line.text.startswith(INSIDE):
                held.add(line)
                if is_last:
                    yield held.line(is_whole=line.is_whole)
                    held = None
                continue
            yield held.line(is_whole=True)
            held = None
        if line.text == FIRST and line.is_whole:
            held = _PrintedObject(line)
        else:
            yield line
    if held is not None:
        yield held.line(is_whole=False)


class _PrintedObject:
    """The lines of an object that have come so far."""

    def __init__(self, first: RawLine) -> None:
        self._text, self._size, self._is_cut = bytearray(first.text), first.size, False

    def add(self, line: RawLine) -> None:
        self._size += line.size
        self._is_cut |= line.is_cut or len(self._text) > MAX_LINE_BYTES
        if not self._is_cut:
            self._text += b" " + line.text.lstrip()

    def line(self, *, is_whole: bool) -> RawLine:
        is_cut = self._is_cut or len(self._text) > MAX_LINE_BYTES
        return RawLine(bytes(self._text[: MAX_LINE_BYTES + 1]), self._size, is_whole, is_cut)
