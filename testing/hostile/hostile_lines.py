"""Log lines and marks that cost as much as possible, as messages of the events topic."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from testing.hostile.hostile_records import APART_MS, BEGIN_MS, GROUP, uuid

MANAGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
PREFIX = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] "


def member_lines(n: int) -> list[bytes]:
    """Return lines of members of one generation that join and fail repeatedly."""
    texts = (
        (
            "Dynamic member with unknown member id joins group {group} in state Stable. Created a new member id "
            "{member} and added the member to the group."
        ),
        "Member {member} in group {group} has failed, removing it from the group.",
    )
    return [
        line(BEGIN_MS + APART_MS + i, text.format(group=GROUP, member=f"c{i}-{uuid(i)}"))
        for i in range(n)
        for text in texts
    ]


def rebalance_lines(n: int) -> list[bytes]:
    """Return lines of invented rebalances of one group."""
    state = "in state PreparingRebalance with old generation {number}"
    reason = "(reason: removing member x on LeaveGroup; client reason: not provided)."
    return [
        line(BEGIN_MS + APART_MS + i * 10 + after, text.format(group=GROUP, number=i))
        for i in range(n)
        for after, text in (
            (0, f"Preparing to rebalance group {{group}} {state} {reason}"),
            (5, "Stabilized group {group} generation {number} with 1 members."),
        )
    ]  # fmt: skip


def long_lines(n: int) -> list[bytes]:
    """Return lines of 8 kB each that match a pattern of ours except at the end, for every repeatable part of a line."""
    parts = (" ", " (", "a", "] INFO ", " in group ", " generation 5 with ", "(reason: ", "; client reason: ", "1", "-")
    head = f"[2026-11-21 10:00:00,123] INFO {PREFIX}Preparing to rebalance group "
    return [
        f"{start}{part * (8_000 // len(part))} oordinator".encode()
        for i in range(n)
        for start, part in [((head, head[:31], head[:26])[i % 3], parts[i // 3 % len(parts)])]
    ]


def marks(n: int) -> list[bytes]:
    """Return marks of the whole cluster, one second apart."""
    return [json.dumps({"kind": "mark", "text": f"deploy {i}", "at": BEGIN_MS + i * 1000}).encode() for i in range(n)]


def controller_lines(n: int) -> list[bytes]:
    """Return lines about invented reassignments of n topics."""
    text = (
        "[QuorumController id=1] Replayed partition assignment change PartitionChangeRecord(partitionId=0, "
        "topicId=AAAAAAAAAAAAAAAAAAAAAA, isr=null, leader=-2, replicas=[1, 2], removingReplicas=[1], "
        "addingReplicas=[2]) for topic t{}"
    )
    logger = "org.apache.kafka.controller.ReplicationControlManager"
    return [line(BEGIN_MS + i, text.format(i), logger) for i in range(n)]


def line(at_ms: int, message: str, logger: str = MANAGER) -> bytes:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    prefix = PREFIX if logger == MANAGER else ""
    return f"[{at:%Y-%m-%d %H:%M:%S},{at_ms % 1000:03}] INFO {prefix}{message} ({logger})".encode()
