"""Readers for Kafka's serialised structs. Each layout of `schemas` becomes one function, once, on import.

The time and memory of a reader are proportional to the size of its input. A length or count is compared with the count
of remaining bytes before anything is built from it.
"""

from __future__ import annotations

import base64
import struct as packed
from collections.abc import Callable, Mapping
from typing import Any

from schemas.records import Maybe, Struct, Type
from schemas.states import QuarantineReason

Reader = Callable[[bytes, int], tuple[Any, int]]
"""(buffer, position) → (value, position after it). Raises only `WireError`."""

LONGEST_STRING = 0x7FFF
"""The limit also applies if the length is a varint (`Readable.readString` in Kafka's generated code)."""


class WireError(Exception):
    """Raised for bytes that do not match the layout."""

    def __init__(self, reason: QuarantineReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def reader(layout: Type, *, flexible: bool) -> Reader:
    """Return the function that reads one value of this type."""
    nullable = isinstance(layout, Maybe)
    kind = layout.type if nullable else layout
    if isinstance(kind, Struct):
        present = _struct(kind, flexible=flexible)
        return _nullable_struct(present) if nullable else present
    if isinstance(kind, list):
        return _array(kind[0], flexible=flexible, nullable=nullable)
    if kind == "string":
        return _string(_length("h", flexible=flexible), nullable=nullable)
    if kind == "bytes":
        return _bytes(_length("i", flexible=flexible), nullable=nullable)
    return _utf16 if kind == "utf16" else _FIXED[kind]


def whole(read: Reader, buffer: bytes, position: int) -> Any:
    """Return the value, which must end at the last byte.

    Raises:
        WireError: bytes follow the value, or it does not match the layout.
    """
    value, end = read(buffer, position)
    if end != len(buffer):
        raise WireError(QuarantineReason.TRAILING_BYTES, f"{len(buffer) - end} bytes after the last field")
    return value


def uuid_text(raw: bytes) -> str:
    """Return an id as Kafka prints it: base64url without padding."""
    return base64.urlsafe_b64encode(raw)[:22].decode()


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of an id that `uuid_text` printed."""
    return base64.urlsafe_b64decode(text + "==")


def uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """Return an unsigned varint of at most 32 bits and the position after it (`ByteUtils.readUnsignedVarint`)."""
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(buffer):
            raise _truncated(1, buffer, position)
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value <= 0xFFFFFFFF:
            return value, position
    raise WireError(QuarantineReason.INVALID_LENGTH, f"a varint longer than 32 bits ends at byte {position}")


def _fixed(code: str) -> Reader:
    layout = packed.Struct(f">{code}")
    unpack, size = layout.unpack_from, layout.size

    def read(buffer: bytes, position: int) -> tuple[int, int]:
        try:
            return unpack(buffer, position)[0], position + size
        except packed.error:
            raise _truncated(size, buffer, position) from None

    return read


def _uuid(buffer: bytes, position: int) -> tuple[str, int]:
    end = position + 16
    if end > len(buffer):
        raise _truncated(16, buffer, position)
    return uuid_text(buffer[position:end]), end


_CODES = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}
_FIXED: Mapping[str, Reader] = {name: _fixed(code) for name, code in _CODES.items()} | {"uuid": _uuid}
_SIZES = {name: packed.calcsize(code) for name, code in _CODES.items()} | {"uuid": 16}


def _least(layout: Type, *, flexible: bool) -> int:
    """Return the smallest size of a value in bytes."""
    if isinstance(layout, Struct):
        return sum(_least(kind, flexible=flexible) for _, kind in layout.fields) + flexible
    if isinstance(layout, str) and layout in _SIZES:
        return _SIZES[layout]
    return 1 if flexible else 2


def _length(code: str, *, flexible: bool) -> Reader:
    """Return a reader of lengths and counts; -1 means null."""
    if not flexible:
        return _fixed(code)

    def compact(buffer: bytes, position: int) -> tuple[int, int]:
        value, position = uvarint(buffer, position)
        return value - 1, position

    return compact


def _absent(length: int, buffer: bytes, position: int, *, nullable: bool) -> None:
    """Return if an invalid length means an allowed null; otherwise raise WireError."""
    if length == -1:
        if nullable:
            return
        raise WireError(QuarantineReason.UNEXPECTED_NULL, f"null before byte {position}, but the field is not nullable")
    left = len(buffer) - position
    raise WireError(QuarantineReason.INVALID_LENGTH, f"length {length} before byte {position}, {left} bytes are left")


def _string(sized: Reader, *, nullable: bool) -> Reader:
    def read(buffer: bytes, position: int) -> tuple[str | None, int]:
        length, position = sized(buffer, position)
        end = position + length
        if length < 0 or end > len(buffer) or length > LONGEST_STRING:
            _absent(length, buffer, position, nullable=nullable)
            return None, position
        try:
            return buffer[position:end].decode(), end
        except UnicodeDecodeError:
            raise WireError(QuarantineReason.INVALID_UTF8, f"text at byte {position} is not UTF-8") from None

    return read


def _bytes(sized: Reader, *, nullable: bool) -> Reader:
    def read(buffer: bytes, position: int) -> tuple[bytes | None, int]:
        length, position = sized(buffer, position)
        end = position + length
        if length < 0 or end > len(buffer):
            _absent(length, buffer, position, nullable=nullable)
            return None, position
        return buffer[position:end], end

    return read


def _utf16(buffer: bytes, position: int) -> tuple[str, int]:
    """Read text that Java's `DataOutputStream.writeChars` wrote after an int32 count of characters."""
    count, position = _FIXED["int32"](buffer, position)
    end = position + 2 * count
    if count < 0 or end > len(buffer):
        _absent(count, buffer, position, nullable=False)
    try:
        return buffer[position:end].decode("utf-16-be"), end
    except UnicodeDecodeError:
        raise WireError(QuarantineReason.INVALID_UTF8, f"text at byte {position} is not UTF-16") from None


def _array(kind: Type, *, flexible: bool, nullable: bool) -> Reader:
    sized, least = _length("i", flexible=flexible), _least(kind, flexible=flexible)
    elements = _integers(_CODES[kind]) if isinstance(kind, str) and kind in _CODES else _each(kind, flexible=flexible)

    def read(buffer: bytes, position: int) -> tuple[list[Any] | None, int]:
        count, position = sized(buffer, position)
        if count < 0 or count * least > len(buffer) - position:
            _absent(count, buffer, position, nullable=nullable)
            return None, position
        return elements(buffer, position, count)

    return read


def _integers(code: str) -> Callable[[bytes, int, int], tuple[list[int], int]]:
    size = packed.calcsize(code)

    def read(buffer: bytes, position: int, count: int) -> tuple[list[int], int]:
        return list(packed.unpack_from(f">{count}{code}", buffer, position)), position + count * size

    return read


def _each(kind: Type, *, flexible: bool) -> Callable[[bytes, int, int], tuple[list[Any], int]]:
    element = reader(kind, flexible=flexible)

    def read(buffer: bytes, position: int, count: int) -> tuple[list[Any], int]:
        out = []
        for _ in range(count):
            value, position = element(buffer, position)
            out.append(value)
        return out, position

    return read


def _nullable_struct(present: Reader) -> Reader:
    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        marker, position = _FIXED["int8"](buffer, position)
        if marker == -1:
            return None, position
        if marker != 1:
            raise WireError(QuarantineReason.INVALID_VALUE, f"a struct has the marker {marker}, neither 1 nor -1")
        return present(buffer, position)

    return read


def _struct(layout: Struct, *, flexible: bool) -> Reader:
    fields = [(name, reader(kind, flexible=flexible)) for name, kind in layout.fields]
    tags = {number: (name, _tagged(kind)) for number, (name, kind) in layout.tags.items()}

    def read(buffer: bytes, position: int) -> tuple[dict[str, Any], int]:
        out = {}
        for name, field in fields:
            out[name], position = field(buffer, position)
        if flexible:
            position = _tags(out, tags, buffer, position)
        return out, position

    return read


def _tagged(layout: Type) -> Reader:
    """Return a reader for a tagged field. A nullable struct follows a varint, 0 for null (`MessageDataGenerator`)."""
    if not (isinstance(layout, Maybe) and isinstance(layout.type, Struct)):
        return reader(layout, flexible=True)
    present = _struct(layout.type, flexible=True)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        marker, position = uvarint(buffer, position)
        return present(buffer, position) if marker else (None, position)

    return read


def _tags(out: dict[str, Any], known: Mapping[int, tuple[str, Reader]], buffer: bytes, position: int) -> int:
    """Add the known tagged fields to `out`, skip the others, and return the position after them."""
    count, position = uvarint(buffer, position)
    if 2 * count > len(buffer) - position:
        _absent(count, buffer, position, nullable=False)
    for _ in range(count):
        number, position = uvarint(buffer, position)
        size, position = uvarint(buffer, position)
        end = position + size
        if end > len(buffer):
            _absent(size, buffer, position, nullable=False)
        if number in known:
            name, read = known[number]
            out[name], after = read(buffer, position)
            if after != end:
                raise WireError(
                    QuarantineReason.INVALID_LENGTH, f"tag {number} takes {after - position} bytes of {size}"
                )
        position = end
    return position


def _truncated(wanted: int, buffer: bytes, position: int) -> WireError:
    left = max(0, len(buffer) - position)
    return WireError(QuarantineReason.TRUNCATED, f"{wanted} bytes expected at byte {position}, {left} left")
