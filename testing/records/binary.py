"""Keys and values of `__consumer_offsets` as bytes, for records by the million: faster than by the layouts."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def group_metadata(
    group: str,
    generation: int,
    at_ms: int,
    *,
    topic: str = "settlement-events",
    count: int = 3,
    partitions: int = 10,
    joined_in: int | None = None,
) -> bytes:
    """Return a GroupMetadataValue v3 of a group of `count` dynamic members to which range assigned `topic`.

    All members joined in the generation `joined_in`, or in this one.
    """
    joined = generation if joined_in is None else joined_in
    ids = [f"{group}-worker-{n}-6f1c2a34-9d1b-4c52-8a70-{joined:06x}{n:06x}" for n in range(count)]
    subscription = struct.pack(">hi", 3, 1) + string(topic) + struct.pack(">iiih", -1, 0, generation - 1, -1)
    members = b"".join(
        string(member)
        + struct.pack(">h", -1)
        + string(f"{group}-worker-{n}")
        + string(f"/10.20.{n}.17")
        + struct.pack(">ii", 300_000, 45_000)
        + blob(subscription)
        + blob(_assignment(string(topic), range(n, partitions, count)))
        for n, member in enumerate(ids)
    )
    head = struct.pack(">h", 3) + string("consumer") + struct.pack(">i", generation) + string("range")
    return head + string(ids[0]) + struct.pack(">qi", at_ms, count) + members


def _assignment(topic: bytes, partitions: Sequence[int]) -> bytes:
    return struct.pack(">hi", 3, 1) + topic + struct.pack(f">i{len(partitions)}ii", len(partitions), *partitions, -1)


def offset_commit_key(group: str, topic: str, partition: int) -> bytes:
    """Return an OffsetCommitKey v1."""
    return _key(1, group, topic, partition)


def offset_commit(committed: int, at_ms: int) -> bytes:
    """Return an OffsetCommitValue v4 of an offset that was committed at this time."""
    return struct.pack(">hqibqb", 4, committed, 7, 1, at_ms, 0)


def group_key(group: str) -> bytes:
    """Return a GroupMetadataKey."""
    return _key(2, group)


def _key(kind: int, group: str, topic: str | None = None, partition: int = 0) -> bytes:
    tail = b"" if topic is None else string(topic) + struct.pack(">i", partition)
    return struct.pack(">h", kind) + string(group) + tail


def string(text: str) -> bytes:
    """Return a string with its length as an int16."""
    return struct.pack(">h", len(text)) + text.encode()


def blob(content: bytes) -> bytes:
    """Return bytes with their length as an int32."""
    return struct.pack(">i", len(content)) + content
