"""A Kafka Connect worker's part in a generation, from its two blobs (KIP-415; `IncrementalCooperativeAssignor`).

Protocol versions 1 and 2 hand out increments: what a worker runs after a generation is what it said it ran, without
what was revoked, with what was assigned. Version 0 (`default`, eager) hands out everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelines.silver.history import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """`running` holds once the generation completed, `allocation` when the worker came into it (None in version 0).

    `delay_ms`: how long workers wait before they join again. `is_refused`: nothing was handed out, because the leader
    had not read the newest configuration.
    """

    version: int
    allocation: frozenset[Resource] | None
    revoked: frozenset[Resource]
    running: frozenset[Resource]
    delay_ms: int
    config_offset: int
    is_refused: bool


def worker(subscription: dict[str, Any], assignment: dict[str, Any]) -> Worker | None:
    """None where the blobs stayed closed, or the leader left the worker out."""
    if "configOffset" not in subscription or "assignment" not in assignment:
        return None
    given = resources(assignment["assignment"])
    if assignment["version"] == 0:
        held, revoked, running = None, frozenset[Resource](), given
    else:
        ran = subscription["allocation"]
        if ran is not None and "assignment" not in ran:
            return None
        held = resources(ran["assignment"]) if ran else frozenset()
        revoked = resources(assignment["revoked"])
        running = (held - revoked) | given
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
    """`{name: [index]}` as (name, index); a connector's index -1 is the connector itself."""
    return frozenset((name, index) for name, indexes in (by_name or {}).items() for index in indexes)
