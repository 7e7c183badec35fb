"""A record of `__consumer_offsets` as one line of JSON: its content, the parts that cannot be decoded, and why."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from pipelines.decoding.commit_metadata import commit_mark
from pipelines.decoding.record_decoding import Decoded, Quarantined, decode_record, failed
from pipelines.decoding.record_times import utc_datetime
from pipelines.limits import LINE_CHARACTERS
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from pipelines.decoding.source_record import SourceRecord

Line = dict[str, Any]
CLOSED_WITH_REASON = frozenset({"opaque", "size", "sha256", "reason"})
"""The fields of a blob that could not be decoded (`member_blobs.opaque`)."""

MOST_FIELDS = 100
"""Maximum count of entries in `not_decoded`. A record with thousands of undecoded members lists only the first ones."""


def json_line(record: SourceRecord, topic: str | None, *, is_raw: bool = False) -> str:
    """Return the record as one line of ASCII JSON, at most `LINE_CHARACTERS` long.

    Args:
        record: the record; any bytes are allowed in it.
        topic: its topic, or None if it is not known.
        is_raw: whether to add the key and value as they are stored, in base64.
    """
    line = position(topic, record.partition, record.offset, record.timestamp_ms)
    try:
        text = compact(line | _content(record, is_raw=is_raw))
    except Exception as error:  # noqa: BLE001 - untrusted bytes: an error must not stop the other records
        return compact(line | _sizes(record, failed(error)))
    if len(text) <= LINE_CHARACTERS:
        return text
    why = Quarantined(QuarantineReason.OVERSIZED, f"the line would have {len(text):,} characters")
    return compact(line | _sizes(record, why))


def batch_line(topic: str | None, partition: int | None, base: int, last: int | None, why: Quarantined) -> str:
    """Return the line for a batch of records that cannot be read.

    Args:
        topic: topic of the batch, or None if it is not known.
        partition: partition of the batch, or None if it is not known.
        base: offset of the batch's first record.
        last: offset of its last record, or None if it is not known.
        why: why the batch cannot be read.
    """
    return compact(position(topic, partition, base) | {"last_offset": last, "not_decoded": [_reason("batch", why)]})


def position(topic: str | None, partition: int | None, offset: int, timestamp_ms: int | None = None) -> Line:
    """Return the fields that locate a record. For `partition`, both -1 and None mean unknown."""
    partition = None if partition == -1 else partition
    return {"topic": topic, "partition": partition, "offset": offset, "timestamp": iso(timestamp_ms)}


def iso(timestamp_ms: int | None) -> str | None:
    """Return milliseconds since 1970 as UTC, such as 2026-11-21T12:00:00.123Z, or None for an invalid time.

    >>> iso(1_795_262_500_123)
    '2026-11-21T12:01:40.123Z'
    """
    at = utc_datetime(timestamp_ms)
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def compact(line: Line) -> str:
    """Return the JSON of a line in ASCII, so that a name cannot contain terminal control characters."""
    return json.dumps(line, separators=(",", ":"))


def _content(record: SourceRecord, *, is_raw: bool) -> Line:
    decoded = decode_record(record.key, record.value)
    line = _decoded(decoded) if isinstance(decoded, Decoded) else _undecoded(record, decoded)
    if is_raw or not isinstance(decoded, Decoded):
        line |= {"key_base64": _base64(record.key), "value_base64": _base64(record.value)}
    return line


def _decoded(decoded: Decoded) -> Line:
    value = decoded.body["value"]
    line = _head(decoded) | {
        "value_version": decoded.value_version,
        "is_tombstone": decoded.is_tombstone,
        "key": decoded.body["key"],
        "value": value,
    }
    if times := {name: iso(at) for name, at in (value or {}).items() if name.endswith("Timestamp")}:
        line["times"] = times
    if value is not None and decoded.record_kind == "OffsetCommit" and (who := _committer(value)):
        line["committer"] = who
    if decoded.body.get("earlyAccess"):
        line["is_early_access"] = True
    if closed := _closed(value, "value"):
        line["not_decoded"] = closed[:MOST_FIELDS]
    return line


def _committer(value: Line) -> Line:
    """Return who wrote the commit, as far as its metadata shows that; all of it is inferred."""
    found = commit_mark(value["metadata"] or "", value.get("leaderEpoch"))
    if len(found.libraries) != 1:
        return {}
    [library] = found.libraries
    who = {"library": library.value, "member_id": found.member_id, "process": found.process}
    return {name: text for name, text in who.items() if text is not None}


def _head(decoded: Decoded) -> Line:
    return {"kind": decoded.record_kind, "key_version": decoded.key_version, "group_id": decoded.group_id}


def _undecoded(record: SourceRecord, why: Quarantined) -> Line:
    """Return the fields of a record that cannot be decoded. If only its value is unreadable, they include the key."""
    key = decode_record(record.key, None)
    if isinstance(key, Quarantined):
        return {"not_decoded": [_reason("key", why)]}
    return _head(key) | {"key": key.body["key"], "not_decoded": [_reason("value", why)]}


def _closed(part: Any, name: str) -> list[Line]:
    """Return the entries for undecoded member data below `name`.

    Layouts have little nesting, so the recursion is short.
    """
    if isinstance(part, list):
        inside = part if part and isinstance(part[0], dict) else []
        return [found for at, inner in enumerate(inside) for found in _closed(inner, f"{name}[{at}]")]
    if not isinstance(part, dict):
        return []
    if part.keys() >= CLOSED_WITH_REASON:
        reason = QuarantineReason(part["reason"])
        return [_reason(name, Quarantined(reason, f"{part['size']} bytes are not decoded"))]
    return [found for key, inner in part.items() for found in _closed(inner, f"{name}.{key}")]


def _reason(field: str, why: Quarantined) -> Line:
    return {"field": field, "reason": why.reason.value, "meaning": why.reason.says, "detail": why.detail}


def _sizes(record: SourceRecord, why: Quarantined) -> Line:
    sizes = {"key_bytes": len(record.key or b""), "value_bytes": len(record.value or b"")}
    return sizes | {"not_decoded": [_reason("record", why)]}


def _base64(raw: bytes | None) -> str | None:
    return None if raw is None else base64.b64encode(raw).decode("ascii")
