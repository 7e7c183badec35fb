"""A Kafka Connect worker's data in a generation, from its two blobs (KIP-415; `IncrementalCooperativeAssignor`).

Protocol versions 1 and 2 assign increments: after a generation, a worker runs what it reported as running, minus the
revoked and plus the assigned connectors and tasks. Version 0 (`default`, eager) assigns everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelines.silver.history import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One worker. `allocation` is what it ran before the generation (None in version 0), `running` what it runs after
    it.

    `delay_ms`: how long workers wait before they rejoin. `is_refused`: nothing was assigned, because the leader had not
    read the newest configuration.
    """

    version: int
    allocation: frozenset[Resource] | None
    revoked: frozenset[Resource]
    running: frozenset[Resource]
    delay_ms: int
    config_offset: int
    is_refused: bool


def worker(subscription: dict[str, Any], assignment: dict[str, Any]) -> Worker | None:
    """Return the worker's data, or None if a blob was not decoded or the leader omitted the worker."""
    if "configOffset" not in subscription or "assignment" not in assignment:
        return None
    assigned = resources(assignment["assignment"])
    if assignment["version"] == 0:
        held, revoked, running = None, frozenset[Resource](), assigned
    else:
        ran = subscription["allocation"]
        if ran is not None and "assignment" not in ran:
            return None
        held = resources(ran["assignment"]) if ran else frozenset()
        revoked = resources(assignment["revoked"])
        running = (held - revoked) | assigned
    return Worker(
        version=assignment["version"],
        allocation=held,
        revoked=revoked,
        running=running,
        delay_ms=assignment["delay"] or 0,
        config_offset=subscription["configOffset"],
        is_refused=assignment["error"] != 0,
    )


def resources(by_name: dict[str, list[int]] | None) -> frozenset[Resource]:
    """Return `{name: [index]}` as pairs (name, index). The index -1 is the connector itself."""
    return frozenset((name, index) for name, indexes in (by_name or {}).items() for index in indexes)
