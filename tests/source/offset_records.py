"""Records of `__consumer_offsets`, byte by byte as Kafka 4.x writes them."""

from __future__ import annotations

import struct

from pipelines.decoding.source_record import SourceRecord


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


def commit_key(group: str, topic: str = "orders", partition: int = 0) -> bytes:
    return struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)


def commit_value(committed: int, at_ms: int = 0, topic_id: bytes | None = None, metadata: str = "") -> bytes:
    """OffsetCommitValue v4, leader epoch 7; the topic's id is tag 0."""
    tags = b"\x00" if topic_id is None else b"\x01\x00\x10" + topic_id
    raw = metadata.encode()
    return struct.pack(">hqi", 4, committed, 7) + _varint(len(raw) + 1) + raw + struct.pack(">q", at_ms) + tags


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + _varint(value >> 7)


def group_key(group: str) -> bytes:
    return struct.pack(">h", 2) + text(group)


def group_value(generation: int, at_ms: int = 0) -> bytes:
    """GroupMetadataValue v3 of a group that has just become empty."""
    return struct.pack(">h", 3) + text("consumer") + struct.pack(">ihhqi", generation, -1, -1, at_ms, 0)


def commit(
    offset: int, group: str = "g", *, partition: int = 0, at_ms: int = 0, committed: int | None = None,
    topic_id: bytes | None = None, metadata: str = "",
):  # fmt: skip
    """`partition` is that of the committed topic; the record is in partition 0 of the offsets topic."""
    committed = offset * 10 if committed is None else committed
    return SourceRecord(
        0,
        offset,
        at_ms,
        commit_key(group, partition=partition),
        commit_value(committed, at_ms, topic_id, metadata),
    )


def deletion(offset: int, group: str = "g", *, partition: int = 0, at_ms: int = 0):
    return SourceRecord(0, offset, at_ms, commit_key(group, partition=partition), None)


def group_record(offset: int, group: str = "g", *, generation: int = 1, at_ms: int = 0):
    return SourceRecord(0, offset, at_ms, group_key(group), group_value(generation, at_ms))
