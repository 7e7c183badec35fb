"""Records of `__consumer_offsets` as a hostile client makes a coordinator write them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from pipelines.decoding.source_record import SourceRecord

START = 1_795_246_000_000
TOPIC = "orders"


def string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def blob(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


def partitions(listed: Sequence[int], topic: str = TOPIC) -> bytes:
    """An assignment of the consumer protocol."""
    return struct.pack(">hi", 3, 1) + string(topic) + struct.pack(f">i{len(listed)}ii", len(listed), *listed, -1)


def owning(listed: Sequence[int], topic: str = TOPIC) -> bytes:
    """A subscription of the consumer protocol that lists owned partitions."""
    owned = struct.pack(">i", 1) + string(topic) + struct.pack(f">i{len(listed)}i", len(listed), *listed)
    return struct.pack(">hi", 3, 1) + string(topic) + struct.pack(">i", -1) + owned + struct.pack(">ih", -1, -1)


def generation(
    number: int, assigned: bytes, *, group: str = "g", client: str = "c", subscription: bytes | None = None
) -> tuple[bytes, bytes]:
    """Key and value of a GroupMetadata record (version 3) with one member, that was synced a minute after the last."""
    at = START + number * 60_000
    member = f"{client}-{number}"
    body = (
        string(member) + struct.pack(">h", -1) + string(client) + string("/10.0.0.1") + struct.pack(">ii", 60_000, 10_000)
        + blob(owning(()) if subscription is None else subscription) + blob(assigned)
    )  # fmt: skip
    head = struct.pack(">h", 3) + string("consumer") + struct.pack(">i", number) + string("range") + string(member)
    return struct.pack(">h", 2) + string(group), head + struct.pack(">qi", at, 1) + body


def commit(group: str, partition: int = 0, committed: int = 1) -> tuple[bytes, bytes]:
    key = struct.pack(">h", 1) + string(group) + string(TOPIC) + struct.pack(">i", partition)
    return key, struct.pack(">hqibqb", 4, committed, 7, 1, START, 0)


def source_records(pairs: Sequence[tuple[bytes, bytes]], *, first_offset: int = 0) -> list[SourceRecord]:
    """The records of one partition, a minute apart."""
    return [
        SourceRecord(0, first_offset + at, START + (first_offset + at + 1) * 60_000, key, value)
        for at, (key, value) in enumerate(pairs)
    ]
