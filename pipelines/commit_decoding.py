"""Values of offset commits, many at once: 99.5 % of all records are these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipelines.record_decoding import Quarantined, decode_record

_KEY = b"\x00\x01" + b"\x00\x00" * 2 + b"\x00" * 4
"""A key of empty names: only the value is looked at."""

OFFSET_AT, EPOCH_AT = 2, 10
V3_FIXED = 2 + 8 + 4 + 2 + 8
"""version, offset, leaderEpoch, length of metadata, commitTimestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitValues:
    """Columns, one entry a value. `error` is 0 where the value could be read; `why` says what was wrong elsewhere."""

    is_tombstone: NDArray[np.bool_]
    committed_offset: NDArray[np.int64]
    leader_epoch: NDArray[np.int32]
    error: NDArray[np.int8]
    why: dict[int, Quarantined] = field(default_factory=dict)

    def quarantined(self, at: int) -> Quarantined:
        """Why value `at` could not be read; `error[at]` is not 0."""
        return self.why[at]


def decode_commit_values(values: Sequence[bytes | None]) -> CommitValues:
    """Every value version of OffsetCommit; a null value is a tombstone.

    The shapes that brokers write (version 3; version 4 with no tag or the topic id alone) are read as columns, anything
    else one by one by the record decoder.
    """
    count = len(values)
    lengths = np.fromiter((-1 if v is None else len(v) for v in values), np.int64, count)
    joined = b"".join(v for v in values if v is not None)
    ends = np.cumsum(np.maximum(lengths, 0))
    starts = ends - np.maximum(lengths, 0)
    # Padded, so that a look past a short value stays inside; its length rules it out.
    data = np.frombuffer(joined + bytes(32), np.uint8)
    out = CommitValues(
        is_tombstone=lengths < 0,
        committed_offset=_number(data, starts + OFFSET_AT, 8),
        leader_epoch=_number(data, starts + EPOCH_AT, 4).astype(np.int32),
        error=np.zeros(count, np.int8),
    )
    for at in np.flatnonzero(
        ~(_version_3(data, starts, lengths) | _version_4(data, starts, lengths) | out.is_tombstone)
    ):
        _one(values, int(at), out)
    return out


def _number(data: NDArray[np.uint8], at: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Big-endian signed integers at these places."""
    value = data[at].astype(np.int8).astype(np.int64)
    for step in range(1, size):
        value = (value << 8) | data[at + step]
    return value


def _version_3(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Version 3 whose metadata is plain ASCII by its length alone: empty, which is what clients send by default."""
    version = (data[starts] == 0) & (data[starts + 1] == 3)
    return version & (lengths == V3_FIXED) & (data[starts + 14] == 0) & (data[starts + 15] == 0)


def _version_4(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Version 4, empty metadata, and either no tag or tag 0 (the topic id, 16 bytes) alone."""
    version = (data[starts] == 0) & (data[starts + 1] == 4) & (data[starts + 14] == 1)
    no_tag = (lengths == 24) & (data[np.minimum(starts + 23, len(data) - 1)] == 0)
    tag = np.minimum(starts + 23, len(data) - 3)
    topic_id = (lengths == 42) & (data[tag] == 1) & (data[tag + 1] == 0) & (data[tag + 2] == 16)
    return version & (no_tag | topic_id)


def _one(values: Sequence[bytes | None], at: int, out: CommitValues) -> None:
    decoded = decode_record(_KEY, values[at])
    if isinstance(decoded, Quarantined):
        out.error[at] = 1
        out.why[at] = decoded
        return
    value = decoded.body["value"]
    out.committed_offset[at] = value["offset"]
    out.leader_epoch[at] = value.get("leaderEpoch", -1)
