"""Readers for the fields of member blobs: each tuple of `BlobField`s in `schemas` is compiled once, on import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.decoding.wire import Reader, WireError, reader
from schemas import member_blobs as facts
from schemas.member_blobs import BlobField
from schemas.records import Maybe, Type
from schemas.states import QuarantineReason

Blob = dict[str, Any]
Field = tuple[str, Reader, int, int]

INT16, INT32 = reader("int16", flexible=False), reader("int32", flexible=False)


def compiled(fields: Sequence[BlobField]) -> list[Field]:
    """Return (name, reader, first version, last version) of each field."""
    return [(field.name, _field(field.type), field.since, field.until) for field in fields]


def _field(kind: Type) -> Reader:
    """Return a reader; lists of (topic or connector, numbers) become {name: numbers}."""
    read = reader(kind, flexible=False)
    listed = kind.type if isinstance(kind, Maybe) else kind
    if listed not in (facts.TOPIC_PARTITIONS, facts.CONNECT_TASKS):
        return read
    (name, _), (numbers, _) = listed[0].fields

    def by_name(raw: bytes, position: int) -> tuple[dict[str, list[int]] | None, int]:
        entries, position = read(raw, position)
        if entries is None:
            return None, position
        out: dict[str, list[int]] = {}
        for entry in entries:
            out.setdefault(entry[name], []).extend(entry[numbers])
        return out, position

    return by_name


def versioned(raw: bytes, fields: list[Field]) -> Blob:
    """Return the version and the fields of a blob that begins with an int16 version.

    Raises:
        WireError: the version is negative, or a field does not match its layout.
    """
    version, position = INT16(raw, 0)
    if version < 0:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"blob version {version}")
    return {"version": version} | with_nulls(raw, position, fields, version)[0]


def with_nulls(raw: bytes, position: int, fields: list[Field], version: int) -> tuple[Blob, int]:
    """Return all fields and the position after them.

    A field is null if this version lacks it or the client ended the blob before it.
    """
    out: Blob = {}
    for name, read, since, _ in fields:
        if since > version or (since > 0 and position == len(raw)):
            out[name] = None
        else:
            out[name], position = read(raw, position)
    return out, position
