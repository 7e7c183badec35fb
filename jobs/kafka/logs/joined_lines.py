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
    text, size, is_cut = bytearray(), 0, False
    for line in lines:
        is_last = line.text == LAST
        if size:
            if is_last or line.text.startswith(INSIDE):
                size += line.size
                is_cut |= line.is_cut or len(text) > MAX_LINE_BYTES
                if not is_cut:
                    text += b" " + line.text.lstrip()
                if is_last:
                    yield _object(text, size, is_whole=line.is_whole, is_cut=is_cut)
                    text, size, is_cut = bytearray(), 0, False
                continue
            yield _object(text, size, is_whole=True, is_cut=is_cut)
            text, size, is_cut = bytearray(), 0, False
        if line.text == FIRST and line.is_whole:
            text, size = bytearray(FIRST), line.size
        else:
            yield line
    if size:
        yield _object(text, size, is_whole=False, is_cut=is_cut)


def _object(text: bytearray, size: int, *, is_whole: bool, is_cut: bool) -> RawLine:
    return RawLine(bytes(text[: MAX_LINE_BYTES + 1]), size, is_whole, is_cut or len(text) > MAX_LINE_BYTES)
