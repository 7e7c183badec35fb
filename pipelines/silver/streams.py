"""A Kafka Streams member's data in a classic generation, from the user data of its assignment (`AssignmentInfo`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelines.silver.history import Resource

NEVER = (1 << 63) - 1
"""Long.MAX_VALUE, which means that no rebalance is scheduled."""

VERSION_PROBING = 2
ERRORS = {
    1: "source topics are missing: nothing was assigned",
    VERSION_PROBING: "version probing: members of different releases agree on a version that all of them support",
    3: "the leader could not compute an assignment: nothing was assigned",
    4: "a member asked for all members to shut down",
}
"""Error codes of `AssignorError`, with their texts in `group_events`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """The tasks of one member besides its active ones.

    `standby` contains (subtopology, partition) of standby and warm-up tasks, which the bytes do not distinguish.
    `next_rebalance_at`: when the member rejoins (a probing rebalance); 0 means at once, None never.
    """

    standby: frozenset[Resource]
    next_rebalance_at: int | None
    error: int


def tasks(assignment: dict[str, Any]) -> Tasks | None:
    """Return the tasks, or None if the user data is absent or was not decoded."""
    user_data = assignment.get("userData")
    if not isinstance(user_data, dict) or "standbyTasks" not in user_data:
        return None
    scheduled = user_data.get("nextRebalanceMs")
    return Tasks(
        standby=frozenset((_subtopology(task), task["partition"]) for task in user_data["standbyTasks"]),
        next_rebalance_at=None if scheduled in (None, NEVER) else scheduled,
        error=user_data.get("errorCode") or 0,
    )


def _subtopology(task: dict[str, Any]) -> str:
    """Return the subtopology as `TaskId` prints it."""
    named = task.get("namedTopology")
    return f"{named}__{task['topicGroupId']}" if named else str(task["topicGroupId"])
