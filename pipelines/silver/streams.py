"""A Kafka Streams member's part in a classic generation, from the user data of its assignment (`AssignmentInfo`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelines.silver.history import Resource

NEVER = (1 << 63) - 1
"""Long.MAX_VALUE: no rebalance is scheduled."""

VERSION_PROBING = 2
ERRORS = {
    1: "source topics are missing: nothing was handed out",
    VERSION_PROBING: "version probing: members of different releases look for the version all of them know",
    3: "the leader could not compute an assignment: nothing was handed out",
    4: "a member asked for all members to shut down",
}
"""`AssignorError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """`standby` as (subtopology, partition), warm-up tasks among them: the bytes do not tell these apart.

    `next_rebalance_at`: the member joins again then (a probing rebalance); 0 at once, None not at all.
    """

    standby: frozenset[Resource]
    next_rebalance_at: int | None
    error: int


def tasks(assignment: dict[str, Any]) -> Tasks | None:
    """None where the user data is absent or stayed closed."""
    stated = assignment.get("userData")
    if not isinstance(stated, dict) or "standbyTasks" not in stated:
        return None
    scheduled = stated.get("nextRebalanceMs")
    return Tasks(
        standby=frozenset((_subtopology(task), task["partition"]) for task in stated["standbyTasks"]),
        next_rebalance_at=None if scheduled in (None, NEVER) else scheduled,
        error=stated.get("errorCode") or 0,
    )


def _subtopology(task: dict[str, Any]) -> str:
    """As `TaskId` prints it."""
    named = task.get("namedTopology")
    return f"{named}__{task['topicGroupId']}" if named else str(task["topicGroupId"])
