"""Subscription and assignment bytes of classic members, read by protocol type; opaque where nothing fits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from pipelines.wire import Reader, WireError, reader
from schemas.member_blobs import (
    ASSIGNMENT,
    CONNECT_ASSIGNMENT,
    CONNECT_SUBSCRIPTION,
    COOPERATIVE_STICKY_USER_DATA,
    STICKY_USER_DATA,
    STREAMS_NAMED_OFFSET_SUMS,
    STREAMS_NEWEST,
    STREAMS_OFFSET_SUMS,
    STREAMS_TASK,
    SUBSCRIPTION,
)
from schemas.records import Type, maybe
from schemas.states import QuarantineReason

Fields = list[tuple[int, str, Reader]]
Blob = dict[str, Any]


def _compiled(layout: tuple[tuple[int, str, Type], ...]) -> Fields:
    return [(since, name, reader(kind, flexible=False)) for since, name, kind in layout]


_SUBSCRIPTION, _ASSIGNMENT = _compiled(SUBSCRIPTION), _compiled(ASSIGNMENT)
_CONNECT_SUBSCRIPTION, _CONNECT_ASSIGNMENT = _compiled(CONNECT_SUBSCRIPTION), _compiled(CONNECT_ASSIGNMENT)
_STICKY, _COOPERATIVE = _compiled(STICKY_USER_DATA), _compiled(COOPERATIVE_STICKY_USER_DATA)
_INT16, _INT32 = reader("int16", flexible=False), reader("int32", flexible=False)
_NEWEST = 1 << 15


def opaque(raw: bytes, reason: QuarantineReason | None = None) -> Blob:
    """Bytes that stay closed, told apart by size and hash."""
    closed = {"opaque": True, "size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()[:16]}
    return closed | ({"reason": reason.value} if reason else {})


def decode_subscription(raw: bytes, protocol_type: str, protocol: str | None) -> Blob:
    """A member's metadata for the chosen protocol."""
    return _decode(
        raw, {"consumer": _subscription, "connect": _connect_subscription, "sr": _json}, protocol_type, protocol
    )


def decode_assignment(raw: bytes, protocol_type: str, protocol: str | None) -> Blob:
    """What the leader gave a member; `{}` for one that it left out."""
    if not raw:
        return {}
    known = {"consumer": _assignment, "connect": _connect_assignment, "sr": _json}
    return _decode(raw, known, protocol_type, protocol)


def _decode(raw: bytes, known: dict[str, Callable[[bytes, str | None], Blob]], kind: str, protocol: str | None) -> Blob:
    read = known.get(kind)
    if read is None:
        return opaque(raw)
    try:
        return read(raw, protocol)
    except WireError as error:
        return opaque(raw, error.reason)


def _fields(raw: bytes, position: int, fields: Fields, version: int) -> tuple[Blob, int]:
    """The fields of a version; those that an old client left off at the end are absent, unknown ones passed over."""
    out: Blob = {}
    for since, name, read in fields:
        if since > version or (since > 0 and position == len(raw)):
            break
        out[name], position = read(raw, position)
    return out, position


def _versioned(raw: bytes, fields: Fields) -> Blob:
    version, position = _INT16(raw, 0)
    if version < 0:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"blob version {version}")
    return {"version": version} | _fields(raw, position, fields, version)[0]


def _by_name(entries: list[Blob] | None, name: str, numbers: str) -> dict[str, list[int]] | None:
    if entries is None:
        return None
    out: dict[str, list[int]] = {}
    for entry in entries:
        out.setdefault(entry[name], []).extend(entry[numbers])
    return out


def _subscription(raw: bytes, protocol: str | None) -> Blob:
    out = _versioned(raw, _SUBSCRIPTION)
    if "ownedPartitions" in out:
        out["ownedPartitions"] = _by_name(out["ownedPartitions"], "topic", "partitions")
    out["userData"] = _user_data(out["userData"], protocol, _streams_subscription)
    return out


def _assignment(raw: bytes, protocol: str | None) -> Blob:
    out = _versioned(raw, _ASSIGNMENT)
    out["partitions"] = _by_name(out["partitions"], "topic", "partitions")
    out["userData"] = _user_data(out["userData"], protocol, _streams_assignment)
    return out


def _user_data(raw: bytes | None, protocol: str | None, streams: Callable[[bytes], Blob]) -> Blob | None:
    """User data of the assignors whose bytes are known; it never spoils the blob around it."""
    if not raw:
        return None
    try:
        match protocol:
            case "stream":
                return streams(raw)
            case "sticky":
                out = _fields(raw, 0, _STICKY, _NEWEST)[0]
                return out | {"previousAssignment": _by_name(out["previousAssignment"], "topic", "partitions")}
            case "cooperative-sticky":
                return _fields(raw, 0, _COOPERATIVE, _NEWEST)[0]
            case _:
                return opaque(raw)
    except WireError as error:
        return opaque(raw, error.reason)


def _connect_subscription(raw: bytes, _: str | None) -> Blob:
    out = _versioned(raw, _CONNECT_SUBSCRIPTION)
    if out.get("allocation") is not None:
        out["allocation"] = _connect_assignment(out["allocation"], None) if out["allocation"] else None
    return out


def _connect_assignment(raw: bytes, _: str | None) -> Blob:
    out = _versioned(raw, _CONNECT_ASSIGNMENT)
    for name in ("assignment", "revoked"):
        if name in out:
            out[name] = _by_name(out[name], "connector", "tasks")
    return out


def _json(raw: bytes, _: str | None) -> Blob:
    """Schema Registry writes JSON with no version in front."""
    try:
        found = json.loads(raw)
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise WireError(QuarantineReason.INVALID_VALUE, "not JSON") from None
    if not isinstance(found, dict):
        raise WireError(QuarantineReason.INVALID_VALUE, "JSON, but no object")
    return found


# --- Kafka Streams ---------------------------------------------------------------------------------------------------

_TASKS = reader([STREAMS_TASK], flexible=False)
_OFFSET_SUMS = reader(STREAMS_OFFSET_SUMS, flexible=False)
_NAMED_OFFSET_SUMS = reader(STREAMS_NAMED_OFFSET_SUMS, flexible=False)
_UUID, _BYTES = reader("uuid", flexible=False), reader(maybe("bytes"), flexible=False)
_INT8, _INT64 = reader("int8", flexible=False), reader("int64", flexible=False)
_TEXT = reader("string", flexible=False)


def _streams_version(raw: bytes) -> tuple[int, int]:
    version, position = _INT32(raw, 0)
    if not 1 <= version <= STREAMS_NEWEST:
        raise WireError(QuarantineReason.UNKNOWN_VERSION, f"Streams user data version {version}")
    return version, position


def _streams_subscription(raw: bytes) -> Blob:
    """SubscriptionInfoData: tasks and, since version 7, how far each is restored (-2: running as active)."""
    version, position = _streams_version(raw)
    out: Blob = {"version": version}

    def take(name: str, read: Reader) -> None:
        nonlocal position
        out[name], position = read(raw, position)

    if version >= 3:
        take("latestSupportedVersion", _INT32)
    take("processId", _UUID)
    if version <= 6:
        take("prevTasks", _TASKS)
        take("standbyTasks", _TASKS)
    if version >= 2:
        take("userEndPoint", _BYTES)
        out["userEndPoint"] = (out["userEndPoint"] or b"").decode(errors="replace")
    if version >= 7:
        take("taskOffsetSums", _NAMED_OFFSET_SUMS if version >= 10 else _OFFSET_SUMS)
    if version >= 8:
        take("uniqueField", _INT8)
    if version >= 9:
        take("errorCode", _INT32)
    return out


def _streams_assignment(raw: bytes) -> Blob:
    """AssignmentInfo: active tasks in the order of the sorted partitions; error code and schedule stand at the end."""
    version, position = _streams_version(raw)
    out: Blob = {"version": version}
    if version >= 3:
        out["commonlySupportedVersion"], position = _INT32(raw, position)
    count, position = _INT32(raw, position)
    if not 0 <= count <= len(raw):
        raise WireError(QuarantineReason.INVALID_LENGTH, f"{count} active tasks")
    out["activeTasks"] = []
    for _ in range(count):
        task, position = _streams_task(raw, position, version)
        out["activeTasks"].append(task)
    if version >= 7:
        out["nextRebalanceMs"], _ = _INT64(raw, len(raw) - 8)
        out["errorCode"], _ = _INT32(raw, len(raw) - 12)
    elif version >= 4:
        out["errorCode"], _ = _INT32(raw, len(raw) - 4)
    out["standbyTasks"] = _streams_standby(raw, position, version)
    return out


def _streams_task(raw: bytes, position: int, version: int) -> tuple[Blob, int]:
    subtopology, position = _INT32(raw, position)
    partition, position = _INT32(raw, position)
    if version >= 10:
        characters, position = _INT32(raw, position)
        if not 0 <= characters <= len(raw) - position:
            raise WireError(QuarantineReason.INVALID_LENGTH, f"a topology name of {characters} characters")
        position += 2 * characters
    return {"topicGroupId": subtopology, "partition": partition}, position


def _streams_standby(raw: bytes, position: int, version: int) -> list[Blob]:
    count, position = _INT32(raw, position)
    if not 0 <= count <= len(raw):
        raise WireError(QuarantineReason.INVALID_LENGTH, f"{count} standby tasks")
    tasks = []
    for _ in range(count):
        task, position = _streams_task(raw, position, version)
        partitions, position = _INT32(raw, position)
        if not 0 <= partitions <= len(raw):
            raise WireError(QuarantineReason.INVALID_LENGTH, f"{partitions} standby partitions")
        for _ in range(partitions):
            _, position = _TEXT(raw, position)
            _, position = _INT32(raw, position)
        tasks.append(task)
    return tasks
