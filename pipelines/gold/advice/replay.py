"""The parts that all replays share: the policy, the event queue, and the account of stopped resources."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.churn import Churn, Resource

MEMBERSHIPS_PER_INSTANCE = 10_000
"""Factor in a member's number: instance number times this, plus the count of its earlier memberships. So members sort
like their instances."""

SETTLING_MS = 900_000
"""How long a replay continues after its last event, because a pending timeout is part of the cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One way to run a group.

    `session_timeout_ms` and `heartbeat_interval_ms` are None for each member's own value (KIP-848: the broker's value).
    """

    is_consumer_protocol: bool = False
    is_cooperative: bool = False
    is_static: bool = False
    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of one replay: resource-milliseconds lost, and the number of rebalances (KIP-848: epochs)."""

    lost_ms: int
    rebalances: int


@dataclass(slots=True, kw_only=True)
class Account:
    """Account of stopped resources. A stop counts as lost once a member resumes; in an empty group it is idle time."""

    down: dict[Resource, int] = field(default_factory=dict)
    lost_ms: int = 0

    def stop(self, resources: Iterable[Resource], at: int) -> None:
        """Record that resources stopped at `at`; the earliest stop of a resource counts."""
        for resource in resources:
            if self.down.setdefault(resource, at) > at:
                self.down[resource] = at

    def resume(self, resources: Iterable[Resource], at: int) -> None:
        """Record that members process resources again from `at` on, and add the time since their stop to the loss."""
        for resource in resources:
            since = self.down.pop(resource, None)
            if since is not None:
                self.lost_ms += max(0, at - since)

    def empty(self) -> None:
        """Forget all stops, because the group has no members left."""
        self.down.clear()


M = TypeVar("M")
Step = Callable[[int, int, int], None]
"""A function of the time, the member or instance concerned, and a tag whose meaning only the step knows."""


@dataclass(slots=True)
class Agenda:
    """Queue of future events by time; events of the same time in the order in which they were added."""

    _entries: list[tuple[int, int, str, int, int]] = field(default_factory=list)
    _added: int = 0

    def at(self, when: int, kind: str, subject: int = -1, tag: int = 0) -> None:
        heapq.heappush(self._entries, (when, self._added, kind, subject, tag))
        self._added += 1

    def run(self, steps: Mapping[str, Step], end: int) -> None:
        """Call the step of each event up to `end`, including events that steps add."""
        entries, pop = self._entries, heapq.heappop
        while entries and entries[0][0] <= end:
            when, _, kind, subject, tag = pop(entries)
            steps[kind](when, subject, tag)


class Replay(ABC, Generic[M]):
    """Replay of a group's churn under one policy: members, owners, and the stops and returns of instances. Call `run`
    only once.
    """

    def __init__(self, churn: Churn, latencies: Latencies, policy: Policy, random: Random) -> None:
        self._churn, self._latencies, self._policy, self._random = churn, latencies, policy, random
        self._agenda, self._account = Agenda(), Account()
        self._members: dict[int, M] = {}
        self._current: dict[int, int] = {}
        self._owners: dict[Resource, int] = {}
        self._rebalances = 0
        for instance, resources in churn.first.items():
            member = self._enter(instance, churn.start_ms)
            self._owners |= dict.fromkeys(resources, member)
        for at, instance in churn.arrivals:
            self._agenda.at(at, "back", instance)
        for number, outage in enumerate(churn.outages):
            self._agenda.at(outage.stopped_at, "stop", outage.instance, number)
            if outage.back_at is not None:
                self._agenda.at(outage.back_at, "back", outage.instance)

    @abstractmethod
    def _steps(self) -> Mapping[str, Step]:
        """Return the function for each kind of event. Events `stop` and `back` are already in the queue."""

    @abstractmethod
    def _joining_at(self, at: int) -> M:
        """Return a new member that joins at `at`."""

    def run(self) -> Outcome:
        """Run the replay and return its loss and number of rebalances."""
        self._agenda.run(self._steps(), self._churn.end_ms + SETTLING_MS)
        return Outcome(lost_ms=self._account.lost_ms, rebalances=self._rebalances)

    def _enter(self, instance: int, at: int) -> int:
        member = self._current.get(instance, instance * MEMBERSHIPS_PER_INSTANCE - 1) + 1
        self._current[instance] = member
        self._members[member] = self._joining_at(at)
        return member

    def _mine(self, member: int) -> list[Resource]:
        return [r for r, owner in self._owners.items() if owner == member]
