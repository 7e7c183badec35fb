"""Records of `__consumer_offsets` that cost as much as possible: (time in ms, key, value), all of one group."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from testing.records.binary import blob, offset_commit, offset_commit_key, string

BEGIN_MS, APART_MS = 1_790_000_000_000, 20_000
"""The time of the first generation, and the time between two."""

GROUP = "payments"


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    client_id: str
    instance_id: str | None = None


def generation(number: int, members: list[Member]) -> tuple[int, bytes, bytes]:
    """Return time, key and value of a GroupMetadata record whose members have one partition each."""
    at = BEGIN_MS + number * APART_MS
    topic = string("orders")
    subscription = struct.pack(">hi", 1, 1) + topic + struct.pack(">ii", -1, 0)
    parts = b"".join(
        string(each.member_id)
        + (string(each.instance_id) if each.instance_id else struct.pack(">h", -1))
        + string(each.client_id)
        + string("/10.0.0.1")
        + struct.pack(">ii", 300_000, 45_000)
        + blob(subscription)
        + blob(struct.pack(">hi", 1, 1) + topic + struct.pack(">iii", 1, place, -1))
        for place, each in enumerate(members)
    )
    head = struct.pack(">h", 3) + string("consumer") + struct.pack(">i", number) + string("range")
    leader = string(members[0].member_id) if members else struct.pack(">h", -1)
    value = head + leader + struct.pack(">qi", at, len(members)) + parts
    return at, struct.pack(">h", 2) + string(GROUP), value


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def fresh_client_ids(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records in which one member after the other joins, each in its own generation with its own client id."""
    return [generation(g, [Member(f"c{g}-{uuid(g)}", f"c{g}")]) for g in range(1, n + 1)]


def one_client_id(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records of members with one client id; each of four generations has other members."""
    return [generation(g, [Member(f"c-{uuid(g * n + m)}", "c") for m in range(n)]) for g in range(1, 5)]


def static_ids(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records of static members that all restart with a new member id in each of a generation's four records."""
    return [generation(g, [Member(f"i{m}-{uuid(g * n + m)}", "c", f"i{m}") for m in range(n)]) for g in (1, 1, 1, 2)]


def fresh_instance_ids(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return records in which one static member after the other joins, each with its own instance id."""
    return [generation(g, [Member(f"i{g}-{uuid(g)}", "c", f"i{g}")]) for g in range(1, n + 1)]


def commits(n: int) -> list[tuple[int, bytes, bytes]]:
    """Return commits of n groups and topics."""
    value = offset_commit(5, BEGIN_MS)
    return [(BEGIN_MS + i, offset_commit_key(f"g{i}", f"t{i}", 0), value) for i in range(n)]
