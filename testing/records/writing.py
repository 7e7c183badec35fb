"""Writes what the reader reads, from the same layouts: for every record that no broker at hand writes."""

from __future__ import annotations

import base64
import struct
from typing import Any, TypedDict, Unpack

from hypothesis import strategies as st

from pipelines.decoding.wire import uuid_text
from schemas.records import KINDS, Maybe, Struct, Type

CODES = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q"}
NAME_LENGTHS = (0, 1, 126, 127, 128, 16383)
TEXTS: dict[str, st.SearchStrategy[Any]] = {
    "uuid": st.binary(min_size=16, max_size=16).map(uuid_text),
    "string": st.text(max_size=20),
    "bytes": st.binary(max_size=40),
}
UNKNOWN_TAGS = {40: b"", 41: b"\xff" * 130, 2**31: b"later"}


class _Layout(TypedDict):
    flexible: bool
    unknown: dict[int, bytes] | None


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def written(kind: Type, value: Any, *, flexible: bool, unknown: dict[int, bytes] | None = None) -> bytes:
    """`unknown` tagged fields are added to every struct of a flexible version."""
    more: _Layout = {"flexible": flexible, "unknown": unknown}
    nullable = isinstance(kind, Maybe)
    kind = kind.type if nullable else kind
    if isinstance(kind, Struct):
        marker = b"" if not nullable else b"\xff" if value is None else b"\x01"
        return marker + (b"" if value is None else _struct(kind, value, **more))
    if isinstance(kind, list):
        return _length(None if value is None else len(value), "i", flexible=flexible) + b"".join(
            written(kind[0], entry, **more) for entry in value or ()
        )
    if kind in CODES:
        return struct.pack(f">{CODES[kind]}", value)
    if kind == "uuid":
        return base64.urlsafe_b64decode(value + "==")
    raw = value.encode() if isinstance(value, str) else value
    return _length(None if raw is None else len(raw), "h" if kind == "string" else "i", flexible=flexible) + (
        raw or b""
    )


def _length(count: int | None, code: str, *, flexible: bool) -> bytes:
    if flexible:
        return uvarint(0 if count is None else count + 1)
    return struct.pack(f">{code}", -1 if count is None else count)


def _struct(kind: Struct, value: dict[str, Any], *, flexible: bool, unknown: dict[int, bytes] | None) -> bytes:
    more: _Layout = {"flexible": flexible, "unknown": unknown}
    fields = b"".join(written(field, value[name], **more) for name, field in kind.fields)
    if not flexible:
        return fields
    tags = {number: _tagged(field, value[name], **more) for number, (name, field) in kind.tags.items() if name in value}
    tags |= unknown or {}
    return fields + uvarint(len(tags)) + b"".join(uvarint(n) + uvarint(len(raw)) + raw for n, raw in tags.items())


def _tagged(kind: Type, value: Any, **more: Unpack[_Layout]) -> bytes:
    if isinstance(kind, Maybe) and isinstance(kind.type, Struct):
        return uvarint(0) if value is None else uvarint(1) + written(kind.type, value, **more)
    return written(kind, value, **more)


def versions() -> list[tuple[int, int, Struct]]:
    """(type, value version, layout) of every layout, newest first within a version."""
    return [
        (number, version, layout)
        for number, kind in KINDS.items()
        for version, of_version in kind.versions.items()
        for layout in (*of_version.layouts, *of_version.early_access)
    ]


def record(
    number: int,
    version: int,
    layout: Struct,
    key: dict[str, Any],
    value: dict[str, Any],
    unknown: dict[int, bytes] | None = None,
) -> tuple[bytes, bytes]:
    """(key, value) as stored."""
    flexible = KINDS[number].versions[version].flexible
    head = struct.pack(">h", number) + written(KINDS[number].key, key, flexible=False)
    return head, struct.pack(">h", version) + written(layout, value, flexible=flexible, unknown=unknown)


def values(kind: Type) -> st.SearchStrategy[Any]:
    """Any value of a type, as the reader returns it."""
    if isinstance(kind, Maybe):
        return st.none() | values(kind.type)
    if isinstance(kind, Struct):
        return st.fixed_dictionaries(
            {name: values(field) for name, field in kind.fields},
            optional={name: values(field) for name, field in kind.tags.values()},
        )
    if isinstance(kind, list):
        return st.lists(values(kind[0]), max_size=3)
    if kind in TEXTS:
        return TEXTS[kind]
    bits = 8 * struct.calcsize(CODES[kind])
    return st.integers(0, 2**bits - 1) if kind == "uint16" else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def filled(kind: Type, length: int, *, null: bool = False) -> Any:
    """One value of a type: names and bytes of this length, lists of two, every tag written, null where it may be."""
    if isinstance(kind, Maybe):
        return None if null else filled(kind.type, length)
    if isinstance(kind, Struct):
        return {name: filled(field, length, null=null) for name, field in (*kind.fields, *kind.tags.values())}
    if isinstance(kind, list):
        return [filled(kind[0], length, null=null)] * 2
    if kind == "uuid":
        return uuid_text(bytes(range(16)))
    return {"string": "n" * length, "bytes": b"b" * length}.get(kind, 7)
