"""Page headers of a Parquet file. They show how many bytes a reader would unpack, before it unpacks them.

A page header is a Thrift struct in the compact protocol: https://github.com/apache/parquet-format (PageHeader).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
DELTA_BYTE_ARRAY = 7
HEADER_FIELDS = {DATA: 5, DICTIONARY: 7, DATA_V2: 8}
"""The page type, mapped to the field with the header of that type."""

ENCODING_FIELD = {DATA: 2, DICTIONARY: 2, DATA_V2: 4}
DEPTH = 8
"""Maximum depth of nested structs in a page header. Statistics have the deepest nesting, 3."""

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, _MAP, STRUCT = range(1, 13)


class ParquetPage(NamedTuple):
    """One page.

    `values` is the count of values including nulls; `unpacked` is the size in bytes after decompression.
    """

    kind: int
    values: int
    unpacked: int
    encoding: int


def pages(raw: bytes, start: int, size: int) -> Iterator[ParquetPage]:
    """Yield the pages of the column chunk that begins at `start` and has `size` bytes.

    Raises:
        ValueError: a header is broken, or a page does not end within the chunk.
    """
    at, end = start, start + size
    if start < 0 or size < 0 or end > len(raw):
        raise ValueError("a column lies outside the file")
    while at < end:
        reader = _Compact(raw, at, end)
        header = reader.struct()
        kind, unpacked, packed = (header.get(field) for field in (1, 2, 3))
        if not isinstance(kind, int) or kind not in HEADER_FIELDS:
            raise ValueError("a page has an unknown type")
        own = header.get(HEADER_FIELDS[kind])
        numbers: list[Any] = [unpacked, packed]
        numbers += [own.get(field) for field in (1, ENCODING_FIELD[kind])] if isinstance(own, dict) else [None]
        if not all(isinstance(each, int) and 0 <= each < 2**31 for each in numbers):
            raise ValueError("the header of a page is broken")
        at = reader.at + numbers[1]
        if at > end:
            raise ValueError("a page does not end within its column")
        yield ParquetPage(kind, values=numbers[2], unpacked=numbers[0], encoding=numbers[3])


class _Compact:
    """A reader of numbers and nested structs. Bytes and lists are skipped."""

    def __init__(self, raw: bytes, at: int, end: int) -> None:
        self._raw, self.at, self._end = raw, at, end

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the values by field number."""
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self._zigzag()
            if number in found:  # Parquet readers disagree on which of the two values applies
                raise ValueError("the header of a page is broken")
            found[number] = self._value(head & 0x0F, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > DEPTH:
            raise ValueError("the header of a page is nested too deeply")
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in (I16, I32, I64):
            return self._zigzag()
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (BYTE, DOUBLE, BINARY):
            self._skip({BYTE: 1, DOUBLE: 8}.get(kind) or self._varint())
            return None
        if kind in (LIST, SET):
            return self._list(depth)
        raise ValueError("the header of a page is broken")

    def _list(self, depth: int) -> None:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > self._end - self.at:
            raise ValueError("the header of a page is broken")
        for _ in range(count):
            kind = head & 0x0F
            if kind in (TRUE, FALSE):
                self._skip(1)
            else:
                self._value(kind, depth + 1)

    def _byte(self) -> int:
        if self.at >= self._end:
            raise ValueError("the header of a page ends early")
        self.at += 1
        return self._raw[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > self._end:
            raise ValueError("the header of a page ends early")

    def _varint(self) -> int:
        found = shift = 0
        while shift < 70:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7
        raise ValueError("the header of a page is broken")

    def _zigzag(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)
