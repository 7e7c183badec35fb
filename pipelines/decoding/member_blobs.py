"""Decoders for the subscription and assignment bytes of classic members, selected by protocol type.

Bytes that cannot be decoded never make their record unreadable. They are replaced by their size, hash and the reason.
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
"""Maximum count of brackets in a schema registry's JSON, which has four. Python could parse deeper JSON but not encode
it again.
"""


ENTRY_BYTES = 4
"""Minimum size in bytes of a partition or task in every layout."""


def opaque(raw: bytes, reason: QuarantineReason | None = None) -> Blob:
    """Return the size and hash of bytes that are not decoded; `reason` only if they should have been readable."""
    closed = {"opaque": True, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()[:16]}
    return closed if reason is None else closed | {"reason": reason.value}


def closed_if_too_large(raw: Sequence[bytes], opened: Sequence[Blob], most: int) -> Sequence[Blob]:
    """Return the decoded blobs of one record, or closed blobs if they list more than `most` partitions and tasks
    together.

    A closed blob has the reason and `entries`, the count of partitions and tasks that it lists.
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
    """Return the count of numbers in all lists of a decoded blob, which are partitions and tasks."""
    if isinstance(part, dict):
        return sum(map(_entries, part.values()))
    if not isinstance(part, list) or not part or isinstance(part[0], str):
        return 0
    return len(part) if isinstance(part[0], int) else sum(map(_entries, part))


def decode_subscription(raw: bytes, protocol_type: str, protocol: str | None) -> Blob:
    """Return a member's metadata for the group's protocol.

    It has every field of the newest version. A field that this version lacks is null.
    """
    return _decode(_SUBSCRIPTIONS.get(protocol_type), raw, protocol)


def decode_assignment(raw: bytes, protocol_type: str, protocol: str | None) -> Blob:
    """Return the leader's assignment for a member, or `{}` if the leader omitted the member.

    It has every field of the newest version. A field that this version lacks is null.
    """
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


_INT16, _INT32 = reader("int16", flexible=False), reader("int32", flexible=False)


def _versioned(raw: bytes, fields: list[Field]) -> Blob:
    version, position = _INT16(raw, 0)
    if version < 0:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"blob version {version}")
    return {"version": version} | _fields(raw, position, fields, version)


def _fields(raw: bytes, position: int, fields: list[Field], version: int) -> Blob:
    """Return all fields. A field is null if this version lacks it or the client ended the blob before it.

    Additional bytes at the end are ignored.
    """
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
    """Return the user data that the assignor added, or null if it added none."""
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
    """Return a reader for these names of the JSON object.

    Other names are untrusted, and might be mistaken for fields of another protocol.
    """

    def read(raw: bytes, _: str | None) -> Blob:
        if raw.count(b"{") + raw.count(b"[") > MOST_BRACKETS:
            raise WireError(QuarantineReason.INVALID_VALUE, "more brackets than a schema registry writes")
        try:
            found = {name: declared for name, declared in json.loads(raw).items() if name in names}
            # A table can store neither half of a surrogate pair nor a number outside JSON.
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
    """Return the fields of this version and the position after them."""
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
    declared = [field for field in _STREAMS_ASSIGNMENT_END if field[2] <= out["version"]]
    end = len(raw) - sum(sizes[name] for name, *_ in declared)
    if end < position:
        raise WireError(QuarantineReason.TRUNCATED, f"{len(raw) - position} bytes left for the end of an assignment")
    for name, read, *_ in declared:
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
