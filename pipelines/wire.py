"""Kafka's serialised structs, read by the layouts of `schemas`: each layout becomes one function, once, on import."""

from __future__ import annotations

import base64
import struct as packed
from collections.abc import Callable, Mapping
from typing import Any

from schemas.records import Maybe, Struct, Type
from schemas.states import QuarantineReason

Reader = Callable[[bytes, int], tuple[Any, int]]
"""(buffer, position) → (value, position after it). Raises `WireError`."""


class WireError(Exception):
    """These bytes are not what the layout says."""

    def __init__(self, reason: QuarantineReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def reader(layout: Type, *, flexible: bool) -> Reader:
    """The function that reads one value of this type."""
    if isinstance(layout, Struct):
        return _struct(layout, flexible=flexible)
    nullable = isinstance(layout, Maybe)
    kind = layout.type if nullable else layout
    if isinstance(kind, Struct):
        return _nullable_struct(_struct(kind, flexible=flexible))
    if isinstance(kind, list):
        return _array(reader(kind[0], flexible=flexible), _length(flexible=flexible, short=False), nullable=nullable)
    if kind in _FIXED:
        return _FIXED[kind]
    sized = _length(flexible=flexible, short=kind == "string")
    return _string(sized, nullable=nullable) if kind == "string" else _bytes(sized, nullable=nullable)


def whole(read: Reader, buffer: bytes, position: int) -> Any:
    """The value, which must use up every byte."""
    value, end = read(buffer, position)
    if end != len(buffer):
        raise WireError(QuarantineReason.TRAILING_BYTES, f"{len(buffer) - end} bytes after the last field")
    return value


def _fixed(code: str) -> Reader:
    unpack, size = packed.Struct(f">{code}").unpack_from, packed.calcsize(f">{code}")

    def read(buffer: bytes, position: int) -> tuple[int, int]:
        try:
            return unpack(buffer, position)[0], position + size
        except packed.error:
            raise _truncated(size, buffer, position) from None

    return read


def uuid_text(raw: bytes) -> str:
    """As Kafka prints it: base64url without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _uuid(buffer: bytes, position: int) -> tuple[str, int]:
    end = position + 16
    if end > len(buffer):
        raise _truncated(16, buffer, position)
    return uuid_text(buffer[position:end]), end


_FIXED: Mapping[str, Reader] = {
    "int8": _fixed("b"),
    "int16": _fixed("h"),
    "uint16": _fixed("H"),
    "int32": _fixed("i"),
    "int64": _fixed("q"),
    "uuid": _uuid,
}


def uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, as `ByteUtils.readUnsignedVarint` takes it."""
    value = shift = 0
    while shift < 35:
        if position >= len(buffer):
            raise _truncated(1, buffer, position)
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
        shift += 7
    raise WireError(QuarantineReason.INVALID_LENGTH, f"a varint longer than 32 bits ends at byte {position}")


def _length(*, flexible: bool, short: bool) -> Reader:
    """Reads a length or count; -1 stands for null."""
    if not flexible:
        return _FIXED["int16" if short else "int32"]

    def compact(buffer: bytes, position: int) -> tuple[int, int]:
        value, position = uvarint(buffer, position)
        return value - 1, position

    return compact


def _checked(length: int, buffer: bytes, position: int, *, nullable: bool) -> bool:
    """Whether there is a value; each element takes a byte at least, so no length may pass the end of the buffer."""
    if length == -1:
        if not nullable:
            raise WireError(QuarantineReason.UNEXPECTED_NULL, f"null at byte {position}, where none is allowed")
        return False
    if length < 0:
        raise WireError(QuarantineReason.INVALID_LENGTH, f"length {length} at byte {position}")
    if length > len(buffer) - position:
        raise _truncated(length, buffer, position)
    return True


def _string(sized: Reader, *, nullable: bool) -> Reader:
    def read(buffer: bytes, position: int) -> tuple[str | None, int]:
        length, position = sized(buffer, position)
        if not _checked(length, buffer, position, nullable=nullable):
            return None, position
        end = position + length
        try:
            return buffer[position:end].decode(), end
        except UnicodeDecodeError:
            raise WireError(QuarantineReason.INVALID_UTF8, f"text at byte {position} is not UTF-8") from None

    return read


def _bytes(sized: Reader, *, nullable: bool) -> Reader:
    def read(buffer: bytes, position: int) -> tuple[bytes | None, int]:
        length, position = sized(buffer, position)
        if not _checked(length, buffer, position, nullable=nullable):
            return None, position
        return buffer[position : position + length], position + length

    return read


def _array(element: Reader, sized: Reader, *, nullable: bool) -> Reader:
    def read(buffer: bytes, position: int) -> tuple[list[Any] | None, int]:
        count, position = sized(buffer, position)
        if not _checked(count, buffer, position, nullable=nullable):
            return None, position
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
            raise WireError(QuarantineReason.INVALID_VALUE, f"a struct is marked {marker}, neither 1 nor -1")
        return present(buffer, position)

    return read


def _tagged(layout: Type) -> Reader:
    """A tagged field's value; a nullable struct there has a varint before it (generator: `MessageDataGenerator`)."""
    if not (isinstance(layout, Maybe) and isinstance(layout.type, Struct)):
        return reader(layout, flexible=True)
    present = _struct(layout.type, flexible=True)

    def read(buffer: bytes, position: int) -> tuple[Any, int]:
        marker, position = uvarint(buffer, position)
        return present(buffer, position) if marker else (None, position)

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


def _tags(out: dict[str, Any], known: Mapping[int, tuple[str, Reader]], buffer: bytes, position: int) -> int:
    count, position = uvarint(buffer, position)
    for _ in range(count):
        number, position = uvarint(buffer, position)
        size, position = uvarint(buffer, position)
        end = position + size
        if end > len(buffer):
            raise _truncated(size, buffer, position)
        if number in known:
            name, read = known[number]
            out[name], after = read(buffer, position)
            if after != end:
                raise WireError(
                    QuarantineReason.INVALID_LENGTH, f"tag {number} is {after - position} bytes, not {size}"
                )
        position = end
    return position


def _truncated(wanted: int, buffer: bytes, position: int) -> WireError:
    left = max(0, len(buffer) - position)
    return WireError(QuarantineReason.TRUNCATED, f"{wanted} bytes wanted at byte {position}, {left} left")
