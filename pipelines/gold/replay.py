"""What every replay shares: the policy, the clock of events, and the account of what nobody processed."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.gold.churn import Resource

SETTLING_MS = 900_000
"""A replay goes on for so long after its last event: what a timeout has yet to notice is a cost of that timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One way to run a group. `session_timeout_ms` None: as each member has it (KIP-848: as the broker has it)."""

    is_consumer_protocol: bool = False
    is_cooperative: bool = False
    is_static: bool = False
    session_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one replay: resource-milliseconds lost and rebalances (KIP-848: epochs)."""

    lost_ms: int
    rebalances: int


@dataclass(slots=True, kw_only=True)
class Account:
    """Resources that nobody processes. Only what somebody takes up again is lost; an empty group is idle instead."""

    down: dict[Resource, int] = field(default_factory=dict)
    lost_ms: int = 0

    def stop(self, resources: Iterable[Resource], at: int) -> None:
        """The earliest stop counts."""
        for resource in resources:
            self.down[resource] = min(at, self.down.get(resource, at))

    def resume(self, resources: Iterable[Resource], at: int) -> None:
        for resource in resources:
            since = self.down.pop(resource, None)
            if since is not None:
                self.lost_ms += max(0, at - since)

    def empty(self) -> None:
        """Nobody is left who could have processed anything."""
        self.down.clear()


@dataclass(slots=True)
class Agenda:
    """What will happen, by time; entries of one instant in the order in which they were made."""

    _entries: list[tuple[int, int, str, int, int]] = field(default_factory=list)
    _made: int = 0

    def at(self, when: int, what: str, who: int = -1, tag: int = 0) -> None:
        heapq.heappush(self._entries, (when, self._made, what, who, tag))
        self._made += 1

    def until(self, end: int) -> Iterable[tuple[int, str, int, int]]:
        """(time, what, who, tag), also of what is entered meanwhile."""
        while self._entries and self._entries[0][0] <= end:
            when, _, what, who, tag = heapq.heappop(self._entries)
            yield when, what, who, tag
