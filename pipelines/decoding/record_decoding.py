"""A decoder for one record of `__consumer_offsets`. It returns the content or the reason for an error, and never
raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelines.decoding.member_blobs import closed_if_too_large, decode_assignment, decode_subscription, opaque
from pipelines.decoding.wire import Reader, WireError, reader, whole
from pipelines.limits import RESOURCES
from schemas.records import EARLY_ACCESS, KINDS
from schemas.states import QuarantineReason

_INT16 = reader("int16", flexible=False)
_KEYS: dict[int, Reader] = {number: reader(kind.key, flexible=False) for number, kind in KINDS.items()}
_VALUES: dict[tuple[int, int], list[tuple[Reader, bool]]] = {
    (number, version): [
        (reader(layout, flexible=declared.flexible), layouts is declared.early_access)
        for layouts in (declared.layouts, declared.early_access)
        for layout in layouts
    ]
    for number, kind in KINDS.items()
    for version, declared in kind.versions.items()
}
_COMMITS = (b"\x00\x00", b"\x00\x01")
_COMMIT, _GROUP_METADATA, _CONSUMER_MEMBER = 1, 2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A decoded record. `body` is {"key": …, "value": …}, with the value None for a tombstone, and can be encoded as
    JSON.

    Field names are those of Kafka's message schemas. A tagged field that was not written is absent. A member's
    subscription, assignment and classic protocols are decoded too (`member_blobs`). A value in the layout of an
    early-access release, which has different fields, adds {"earlyAccess": True}.
    """

    record_kind: str
    key_version: int
    value_version: int | None
    group_id: str
    member_id: str | None
    is_tombstone: bool
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The reason why bytes could not be read, with a detail that contains none of the bytes."""

    reason: QuarantineReason
    detail: str


def failed(error: Exception) -> Quarantined:
    """Return the reason for bytes on which the decoder failed with an unexpected error."""
    return Quarantined(QuarantineReason.READER_FAILED, type(error).__name__)


def is_offset_commit(key: bytes | None) -> bool:
    """Return whether the key is of an offset commit (type 0 or 1).

    `commit_decoding` decodes these, as most records are.
    """
    return key is not None and key[:2] in _COMMITS


def decode_commit_key(key: bytes) -> tuple[str, str, int] | Quarantined:
    """Return (group, topic, partition).

    Callers cache the result by the raw key, because keys are repeated many times.
    """
    try:
        found = whole(_KEYS[_COMMIT], key, 2)
    except WireError as error:
        return Quarantined(error.reason, error.detail)
    except Exception as error:  # noqa: BLE001 - untrusted bytes: an error must not stop the batch
        return failed(error)
    return found["group"], found["topic"], found["partition"]


def decode_record(key: bytes | None, value: bytes | None, max_resources: int = RESOURCES) -> Decoded | Quarantined:
    """Decode any record. A null value is a tombstone.

    If the subscriptions or the assignments of one record list more than `max_resources` partitions or tasks, they are
    not decoded (`member_blobs.closed_if_too_large`).
    """
    if key is None:
        return Quarantined(QuarantineReason.NULL_KEY, "the record has no key")
    try:
        return _decode(key, value, max_resources)
    except WireError as error:
        return Quarantined(error.reason, error.detail)
    except Exception as error:  # noqa: BLE001 - as above
        return failed(error)


def _decode(key: bytes, value: bytes | None, max_resources: int) -> Decoded:
    number, position = _INT16(key, 0)
    if number in EARLY_ACCESS:
        raise WireError(
            QuarantineReason.EARLY_ACCESS,
            f"type {number} ({EARLY_ACCESS[number]}) exists only in early-access releases",
        )
    if number not in KINDS:
        raise WireError(QuarantineReason.UNKNOWN_TYPE, f"type {number}")
    decoded_key = whole(_KEYS[number], key, position)
    body: dict[str, Any] = {"key": decoded_key, "value": None}
    version = None
    if value is not None:
        version, body["value"], is_early_access = _value(number, value, max_resources)
        if is_early_access:
            body["earlyAccess"] = True
    return Decoded(
        record_kind=KINDS[number].name,
        key_version=number,
        value_version=version,
        group_id=decoded_key.get("group", decoded_key.get("groupId")),
        member_id=decoded_key.get("memberId"),
        is_tombstone=value is None,
        body=body,
    )


def _value(number: int, value: bytes, max_resources: int) -> tuple[int, dict[str, Any], bool]:
    """Return (version, fields, whether the layout is of an early-access release).

    If no layout fits, the error of the newest layout is raised.
    """
    version, position = _INT16(value, 0)
    layouts = _VALUES.get((number, version))
    if layouts is None:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"{KINDS[number].name} value version {version}")
    newest: WireError | None = None
    for read, is_early_access in layouts:
        try:
            decoded = whole(read, value, position)
        except WireError as error:
            newest = newest or error
        else:
            _open_blobs(number, decoded, max_resources)
            return version, decoded, is_early_access
    assert newest is not None
    raise newest


def _open_blobs(number: int, value: dict[str, Any], max_resources: int) -> None:
    """Replace bytes in the value by their decoded content."""
    if number == _GROUP_METADATA:
        _open_members(value, max_resources)
    elif number == _CONSUMER_MEMBER:
        protocols = (value.get("classicMemberMetadata") or {}).get("supportedProtocols", ())
        raw = [protocol["metadata"] for protocol in protocols]
        opened = [decode_subscription(protocol["metadata"], "consumer", protocol["name"]) for protocol in protocols]
        for protocol, blob in zip(protocols, closed_if_too_large(raw, opened, max_resources), strict=True):
            protocol["metadata"] = blob
        for assignor in value.get("assignors", ()):
            assignor["metadata"] = opaque(assignor["metadata"])
    elif "metadataBytes" in value:
        value["metadataBytes"] = opaque(value["metadataBytes"])


def _open_members(value: dict[str, Any], max_resources: int) -> None:
    kind, protocol, members = value["protocolType"], value["protocol"], value["members"]
    for field, decode in (("subscription", decode_subscription), ("assignment", decode_assignment)):
        raw = [member[field] for member in members]
        opened = [decode(blob, kind, protocol) for blob in raw]
        for member, blob in zip(members, closed_if_too_large(raw, opened, max_resources), strict=True):
            member[field] = blob
