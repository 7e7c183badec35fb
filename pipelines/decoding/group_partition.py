"""The partition of `__consumer_offsets` that holds a group's records and determines its coordinator."""

from __future__ import annotations

import struct


def partition_of(group_id: str, partitions: int) -> int:
    """Return the partition of `group_id` in a topic of `partitions` partitions (`GroupMetadataManager.partitionFor`).

    >>> partition_of("billing", 50)
    9
    """
    return java_hash(group_id) % partitions


def java_hash(text: str) -> int:
    """Return Kafka's `Utils.abs(text.hashCode())`.

    Java hashes UTF-16 code units, and Kafka's `abs` maps the smallest integer to 0.
    """
    raw = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for (unit,) in struct.iter_unpack(">H", raw):
        value = (31 * value + unit) & 0xFFFFFFFF
    return 0 if value == 0x80000000 else value if value < 0x80000000 else 0x100000000 - value
