"""What every replay shares: the policy, the clock of events, and the account of what nobody processed."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.churn import Churn, Resource

LIVES = 10_000
"""A member's number is its instance's times this, plus which life it is: members sort as their instances do."""

SETTLING_MS = 900_000
"""A replay goes on for so long after its last event: what a timeout has yet to notice is a cost of that timeout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One way to run a group. `session_timeout_ms` None: as each member has it (KIP-848: as the broker has it);
    `heartbeat_interval_ms` likewise.
    """

    is_consumer_protocol: bool = False
    is_cooperative: bool = False
    is_static: bool = False
    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None


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


M = TypeVar("M")
Step = Callable[[int, int, int], None]
"""Given the time, whom it is about, and a number that only the step knows."""


class Replay(ABC, Generic[M]):
    """A group's churn under one policy: who is a member and who has what, and what its instances do of themselves.
    `run` once.
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
        """What happens at each entry of the agenda; `stop` and `back` are entered already."""

    @abstractmethod
    def _joining_at(self, at: int) -> M:
        """A new member."""

    def run(self) -> Outcome:
        """What the churn costs."""
        steps = self._steps()
        for at, what, who, tag in self._agenda.until(self._churn.end_ms + SETTLING_MS):
            steps[what](at, who, tag)
        return Outcome(lost_ms=self._account.lost_ms, rebalances=self._rebalances)

    def _enter(self, instance: int, at: int) -> int:
        member = self._current.get(instance, instance * LIVES - 1) + 1
        self._current[instance] = member
        self._members[member] = self._joining_at(at)
        return member

    def _mine(self, member: int) -> list[Resource]:
        return [r for r, owner in self._owners.items() if owner == member]
