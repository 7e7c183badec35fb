"""A decoder for many values of offset commits at once. 99.5 % of all records are offset commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.decoding.flat_bytes import FlatBytes
from pipelines.decoding.record_decoding import Quarantined, decode_record
from pipelines.decoding.wire import uuid_bytes
from schemas.states import QuarantineReason

_KEY = b"\x00\x01" + b"\x00\x00" * 2 + b"\x00" * 4
"""A key with empty names, because only the value is decoded."""
_ERRORS = {reason: code for code, reason in enumerate(QuarantineReason, 1)}

# For value versions 0 to 4: offset of the metadata's length, size of the length, and count of bytes after the text.
_LENGTH_AT = np.array([10, 10, 10, 14, 14])
_LENGTH_SIZE = np.array([2, 2, 2, 2, 1])
_TAIL = np.array([8, 16, 8, 8, 8])
_OFFSET_AT, _EPOCH_AT, _LEAST, _FLEXIBLE = 2, 10, 20, 4
_LONGEST_TEXT = 126
"""The longest text in version 4 with a length that fits in a varint of one byte."""
_NO_TAG, _TOPIC_ID = 1, 19
"""Size in bytes of the tag buffer: without tags, or with tag 0 of 16 bytes as the only tag."""
_TOPIC_ID_HEAD = 0x01_00_10


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitValues:
    """Columns with one entry per value. For a tombstone or an unreadable value only `is_tombstone` and `error` are
    valid.

    `leader_epoch` is -1 if the value has none. `metadata_at` and `metadata_size` are the position and the size of the
    metadata in bytes; the size is -1 if only the record decoder can read it (`commit_metadata_of`). `commit_timestamp`
    is in milliseconds. `topic_id` has 16 bytes; zero means no id. `error` is 0 for a readable value, otherwise 1 + the
    index of the reason in `QuarantineReason`.
    """

    is_tombstone: NDArray[np.bool_]
    committed_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    commit_timestamp: NDArray[np.int64]
    topic_id: NDArray[np.void]
    metadata_at: NDArray[np.int32]
    metadata_size: NDArray[np.int32]
    error: NDArray[np.int8]
    why: dict[int, Quarantined] = field(default_factory=dict)

    def quarantined(self, at: int) -> Quarantined:
        """Return the reason why value `at` could not be read; `error[at]` must not be 0."""
        return self.why[at]


def decode_commit_values(values: Sequence[bytes | None]) -> CommitValues:
    """Decode values of OffsetCommit records of any version. A null value is a tombstone.

    Values in the forms that brokers write are decoded as columns: no tag or only the topic id, ASCII metadata, in
    version 4 of up to 126 bytes. Other values are decoded one by one by the record decoder, which returns the same for
    these forms.
    """
    out, is_read = _columns(FlatBytes.of(values))
    for at in np.flatnonzero(~is_read & ~out.is_tombstone).tolist():
        _one(values[at], at, out)
    return out


def commit_metadata_of(value: bytes, at: int, size: int) -> str:
    """Return the metadata of a readable value, with its position and size as in `CommitValues`."""
    if size >= 0:
        return value[at : at + size].decode()
    decoded = decode_record(_KEY, value)
    assert not isinstance(decoded, Quarantined)
    return decoded.body["value"]["metadata"] or ""


def _columns(values: FlatBytes) -> tuple[CommitValues, NDArray[np.bool_]]:
    """Decode all values as if they had a common form, and return a mask of the values that have one."""
    starts, sizes = values.start, values.size
    ends = starts + np.maximum(sizes, 0)
    # The padding keeps reads beyond the last value inside the buffer. A result is used only if its position is valid.
    data = values.data
    byte, int16, int32, int64 = (_at_every_byte(data, kind) for kind in ("u1", ">i2", ">i4", ">i8"))

    declared = int16[starts].astype(np.int64)
    is_known = (declared >= 0) & (declared <= _FLEXIBLE) & (sizes >= _LEAST)
    version = np.where(is_known, declared, 0)
    is_flexible = version == _FLEXIBLE
    length_at = starts + _LENGTH_AT[version]
    length = np.where(is_flexible, byte[length_at].astype(np.int64) - 1, int16[length_at])
    text_at = length_at + _LENGTH_SIZE[version]
    left = ends - (text_at + length + _TAIL[version])
    tail_at = np.minimum(text_at + np.maximum(length, 0), ends)
    tags_at = tail_at + 8

    is_bare = is_flexible & (left == _NO_TAG) & (byte[tags_at] == 0)
    has_topic = is_flexible & (left == _TOPIC_ID) & (int32[tags_at] >> 8 == _TOPIC_ID_HEAD)
    is_whole = np.where(is_flexible, (is_bare | has_topic) & (length <= _LONGEST_TEXT), left == 0)
    is_read = is_known & (length >= 0) & is_whole
    is_read &= ~_has_other_than_ascii(byte, text_at, np.where(is_read, length, 0))
    has_topic &= is_read

    topic_id = np.zeros(len(sizes), "V16")
    topic_id[has_topic] = _at_every_byte(data, "V16")[tags_at[has_topic] + 3]
    columns = CommitValues(
        is_tombstone=sizes < 0,
        committed_offset=int64[starts + _OFFSET_AT].astype(np.int64),
        leader_epoch=np.where(version >= 3, int32[starts + _EPOCH_AT], -1).astype(np.int32),
        commit_timestamp=int64[tail_at].astype(np.int64),
        topic_id=topic_id,
        metadata_at=(text_at - starts).astype(np.int32),
        metadata_size=np.where(is_read, length, 0).astype(np.int32),
        error=np.zeros(len(sizes), np.int8),
    )
    return columns, is_read


def _at_every_byte(data: NDArray[np.uint8], kind: str) -> NDArray[Any]:
    """Return an array with the value of this type at each byte offset."""
    return np.ndarray((len(data) - np.dtype(kind).itemsize + 1,), kind, data, strides=(1,))


def _has_other_than_ascii(
    byte: NDArray[np.uint8], at: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which of these texts contain bytes other than ASCII, so that their UTF-8 must be checked."""
    found = np.zeros(len(at), np.bool_)
    texts = np.flatnonzero(length)
    if len(texts):
        edges = np.column_stack((at[texts], at[texts] + length[texts])).ravel()
        found[texts] = np.bitwise_or.reduceat(byte, edges)[::2] >= 0x80
    return found


def _one(value: bytes | None, at: int, out: CommitValues) -> None:
    decoded = decode_record(_KEY, value)
    if isinstance(decoded, Quarantined):
        out.error[at] = _ERRORS[decoded.reason]
        out.why[at] = decoded
        return
    declared = decoded.body["value"]
    out.committed_offset[at] = declared["offset"]
    out.leader_epoch[at] = declared.get("leaderEpoch", -1)
    out.commit_timestamp[at] = declared["commitTimestamp"]
    out.metadata_size[at] = -1 if declared["metadata"] else 0
    if "topicId" in declared:
        out.topic_id[at] = np.void(uuid_bytes(declared["topicId"]))
