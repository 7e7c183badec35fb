"""Subscription and assignment bytes of classic members, read by protocol type; opaque where nothing fits.

A blob never spoils its record: what cannot be read is told apart by size and hash, with the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from pipelines.decoding.wire import Reader, WireError, reader
from schemas import member_blobs as facts
from schemas.member_blobs import BlobField
from schemas.records import Maybe, Type
from schemas.states import QuarantineReason

Blob = dict[str, Any]
Field = tuple[str, Reader, int, int]

MOST_BRACKETS = 64
"""Brackets in a registry's JSON, which has four: deeper text could be read here but not be written again."""


ENTRY_BYTES = 4
"""Every layout stores a partition or task in four bytes or more."""


def opaque(raw: bytes, reason: QuarantineReason | None = None) -> Blob:
    """Bytes that stay closed; `reason` only where they should have been readable."""
    closed = {"opaque": True, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()[:16]}
    return closed if reason is None else closed | {"reason": reason.value}


def closed_if_too_large(raw: Sequence[bytes], opened: Sequence[Blob], most: int) -> Sequence[Blob]:
    """The blobs of one record as they are, or all of them closed if they list more than `most` partitions and tasks
    together. A closed blob states its reason, and how many `entries` it lists.
    """
    if sum(map(len, raw)) <= most * ENTRY_BYTES:
        return opened
    counts = [_entries(blob) for blob in opened]
    if sum(counts) <= most:
        return opened
    return [
        opaque(blob, QuarantineReason.OVERSIZED) | {"entries": entries}
        for blob, entries in zip(raw, counts, strict=True)
    ]


def _entries(part: Any) -> int:
    """Numbers in all lists of a decoded blob: partitions and tasks."""
    if isinstance(part, dict):
        return sum(map(_entries, part.values()))
    if not isinstance(part, list) or not part or isinstance(part[0], str):
        return 0
    return len(part) if isinstance(part[0], int) else sum(map(_entries, part))


def decode_subscription(raw: bytes, protocol_type: str, protocol: str | None) -> Blob:
    """A member's metadata for the group's protocol; every field of the newest version, null where this one lacks it."""
    return _decode(_SUBSCRIPTIONS.get(protocol_type), raw, protocol)


def decode_assignment(raw: bytes, protocol_type: str, protocol: str | None) -> Blob:
    """What the leader gave a member, as above; `{}` for one that it left out."""
    return _decode(_ASSIGNMENTS.get(protocol_type), raw, protocol) if raw else {}


def _decode(read: Callable[[bytes, str | None], Blob] | None, raw: bytes, protocol: str | None) -> Blob:
    if read is None:
        return opaque(raw)
    try:
        return read(raw, protocol)
    except WireError as error:
        return opaque(raw, error.reason)


def _compiled(fields: Sequence[BlobField]) -> list[Field]:
    return [(field.name, _field(field.type), field.since, field.until) for field in fields]


def _field(kind: Type) -> Reader:
    """Lists of (topic or connector, numbers) are read as {name: numbers}."""
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


_INT16, _INT32 = reader("int16", flexible=False), reader("int32", flexible=False)


def _versioned(raw: bytes, fields: list[Field]) -> Blob:
    version, position = _INT16(raw, 0)
    if version < 0:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"blob version {version}")
    return {"version": version} | _fields(raw, position, fields, version)


def _fields(raw: bytes, position: int, fields: list[Field], version: int) -> Blob:
    """All fields; null where this version, or a client that left off the end, has none. More bytes are passed over."""
    out: Blob = {}
    for name, read, since, _ in fields:
        if since > version or (since > 0 and position == len(raw)):
            out[name] = None
        else:
            out[name], position = read(raw, position)
    return out


# --- consumer --------------------------------------------------------------------------------------------------------

_SUBSCRIPTION, _ASSIGNMENT = _compiled(facts.SUBSCRIPTION), _compiled(facts.ASSIGNMENT)
_STICKY, _COOPERATIVE = _compiled(facts.STICKY_USER_DATA), _compiled(facts.COOPERATIVE_STICKY_USER_DATA)


def _subscription(raw: bytes, protocol: str | None) -> Blob:
    out = _versioned(raw, _SUBSCRIPTION)
    return out | {"userData": _user_data(out["userData"], _SUBSCRIPTION_USER_DATA.get(protocol))}


def _assignment(raw: bytes, protocol: str | None) -> Blob:
    out = _versioned(raw, _ASSIGNMENT)
    return out | {"userData": _user_data(out["userData"], _ASSIGNMENT_USER_DATA.get(protocol))}


def _user_data(raw: bytes | None, read: Callable[[bytes], Blob] | None) -> Blob | None:
    """What the assignor added; null where it added nothing."""
    if not raw:
        return None
    return _decode(lambda raw, _: read(raw), raw, None) if read else opaque(raw)


# --- Connect and Schema Registry -------------------------------------------------------------------------------------

_CONNECT_SUBSCRIPTION = _compiled(facts.CONNECT_SUBSCRIPTION)
_CONNECT_ASSIGNMENT = _compiled(facts.CONNECT_ASSIGNMENT)


def _connect_subscription(raw: bytes, _: str | None) -> Blob:
    out = _versioned(raw, _CONNECT_SUBSCRIPTION)
    running = out["allocation"]
    return out | {"allocation": _decode(_connect_assignment, running, None) if running else None}


def _connect_assignment(raw: bytes, _: str | None) -> Blob:
    return _versioned(raw, _CONNECT_ASSIGNMENT)


def _registry(names: Sequence[str]) -> Callable[[bytes, str | None], Blob]:
    """Of the JSON object only these names: others are a stranger's, and might pass for fields of another protocol."""

    def read(raw: bytes, _: str | None) -> Blob:
        if raw.count(b"{") + raw.count(b"[") > MOST_BRACKETS:
            raise WireError(QuarantineReason.INVALID_VALUE, "more brackets than a schema registry writes")
        try:
            found = {name: stated for name, stated in json.loads(raw).items() if name in names}
            # Neither half a surrogate pair nor a number outside JSON can be stored.
            json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, AttributeError):
            raise WireError(QuarantineReason.INVALID_VALUE, "not the JSON object of a schema registry") from None
        return found

    return read


# --- Kafka Streams ---------------------------------------------------------------------------------------------------

_STREAMS_SUBSCRIPTION = _compiled(facts.STREAMS_SUBSCRIPTION)
_STREAMS_ASSIGNMENT = _compiled(facts.STREAMS_ASSIGNMENT)
_STREAMS_ASSIGNMENT_END = _compiled(facts.STREAMS_ASSIGNMENT_END)


def _streams(raw: bytes, fields: list[Field]) -> tuple[Blob, int]:
    """The fields that this version has, and where they end."""
    version, position = _INT32(raw, 0)
    if not 1 <= version <= facts.STREAMS_NEWEST:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"Streams user data version {version}")
    out: Blob = {"version": version}
    for name, read, since, until in fields:
        if since <= version <= until:
            out[name], position = read(raw, position)
    return out, position


def _streams_subscription(raw: bytes) -> Blob:
    out, _ = _streams(raw, _STREAMS_SUBSCRIPTION)
    if "userEndPoint" in out:
        out["userEndPoint"] = out["userEndPoint"].decode(errors="replace")
    for tag in out.get("clientTags", ()):
        tag.update({name: text.decode(errors="replace") for name, text in tag.items()})
    return out


def _streams_assignment(raw: bytes) -> Blob:
    out, position = _streams(raw, _STREAMS_ASSIGNMENT)
    sizes = {"errorCode": 4, "nextRebalanceMs": 8}
    stated = [field for field in _STREAMS_ASSIGNMENT_END if field[2] <= out["version"]]
    end = len(raw) - sum(sizes[name] for name, *_ in stated)
    if end < position:
        raise WireError(QuarantineReason.TRUNCATED, f"{len(raw) - position} bytes left for the end of an assignment")
    for name, read, *_ in stated:
        out[name], end = read(raw, end)
    return out


_SUBSCRIPTION_USER_DATA: dict[str | None, Callable[[bytes], Blob]] = {
    "stream": _streams_subscription,
    "sticky": lambda raw: _fields(raw, 0, _STICKY, 1),
    "cooperative-sticky": lambda raw: _fields(raw, 0, _COOPERATIVE, 0),
}
_ASSIGNMENT_USER_DATA: dict[str | None, Callable[[bytes], Blob]] = {"stream": _streams_assignment}
_SUBSCRIPTIONS = {
    "consumer": _subscription,
    "connect": _connect_subscription,
    "sr": _registry(facts.REGISTRY_IDENTITY),
}
_ASSIGNMENTS = {
    "consumer": _assignment,
    "connect": _connect_assignment,
    "sr": _registry(facts.REGISTRY_ASSIGNMENT),
}
