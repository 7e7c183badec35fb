"""Decoders for the subscription and assignment bytes of classic members, selected by protocol type.

Bytes that cannot be decoded never make their record unreadable. They are replaced by their size, hash and the reason.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from pipelines.decoding.blob_fields import Blob, compiled, versioned
from pipelines.decoding.user_data import UserData, assignment_user_data, subscription_user_data
from pipelines.decoding.wire import WireError
from schemas import member_blobs as facts
from schemas.states import QuarantineReason, UserDataLayout

MOST_BRACKETS = 64
"""Maximum count of brackets in a schema registry's JSON, which has four. Python could parse deeper JSON but not encode
it again.
"""


KEPT_BLOBS, KEPT_BYTES = 1_024, 2_048
"""How many decoded blobs are kept in memory, and the size of the largest one."""

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

    It has every field of the newest version. A field that this version lacks is null, and so is one that the client did
    not write (kafka-go). `userDataLayout` and `userDataSize` describe the user data of consumers.
    """
    return _decode(_SUBSCRIPTIONS.get(protocol_type), raw, protocol)


def decode_assignment(raw: bytes, protocol_type: str, protocol: str | None) -> Blob:
    """Return the leader's assignment for a member, or `{}` if the leader omitted the member.

    It has every field of the newest version. A field that this version lacks is null. `userDataLayout` and
    `userDataSize` describe the user data of consumers.
    """
    return _decode(_ASSIGNMENTS.get(protocol_type), raw, protocol) if raw else {}


def _decode(read: Callable[[bytes, str | None], Blob] | None, raw: bytes, protocol: str | None) -> Blob:
    """Return the decoded bytes, which must not be changed: a loop of generations decodes equal bytes once."""
    return (_decoded if len(raw) > KEPT_BYTES else _kept)(read, raw, protocol)


def _decoded(read: Callable[[bytes, str | None], Blob] | None, raw: bytes, protocol: str | None) -> Blob:
    if read is None:
        return opaque(raw)
    try:
        return read(raw, protocol)
    except WireError as error:
        return opaque(raw, error.reason)


_kept = lru_cache(KEPT_BLOBS)(_decoded)


# --- consumer --------------------------------------------------------------------------------------------------------

_SUBSCRIPTION, _ASSIGNMENT = compiled(facts.SUBSCRIPTION), compiled(facts.ASSIGNMENT)


def _subscription(raw: bytes, protocol: str | None) -> Blob:
    return _with_user_data(versioned(raw, _SUBSCRIPTION), protocol, subscription_user_data)


def _assignment(raw: bytes, protocol: str | None) -> Blob:
    return _with_user_data(versioned(raw, _ASSIGNMENT), protocol, assignment_user_data)


def _with_user_data(blob: Blob, protocol: str | None, read: Callable[[bytes | None, str | None], UserData]) -> Blob:
    """Return the blob with decoded user data, its layout, and its size in bytes; null user data has the size null."""
    raw = blob["userData"]
    found = read(raw, protocol)
    content = opaque(raw, found.reason) if found.layout is UserDataLayout.UNKNOWN else found.content
    size = None if raw is None else len(raw)
    return blob | {"userData": content, "userDataLayout": found.layout.value, "userDataSize": size}


# --- Connect and Schema Registry -------------------------------------------------------------------------------------

_CONNECT_SUBSCRIPTION = compiled(facts.CONNECT_SUBSCRIPTION)
_CONNECT_ASSIGNMENT = compiled(facts.CONNECT_ASSIGNMENT)


def _connect_subscription(raw: bytes, _: str | None) -> Blob:
    out = versioned(raw, _CONNECT_SUBSCRIPTION)
    running = out["allocation"]
    return out | {"allocation": _decode(_connect_assignment, running, None) if running else None}


def _connect_assignment(raw: bytes, _: str | None) -> Blob:
    return versioned(raw, _CONNECT_ASSIGNMENT)


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
