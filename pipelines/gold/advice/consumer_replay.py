"""One replay of a group's churn under the consumer protocol (KIP-848): epochs, targets and heartbeats.

Source: Kafka's `GroupMetadataManager` and `CurrentAssignmentBuilder`. A new target is computed at once after a join,
and at the next heartbeat of any member after a leave. At its heartbeat, a member learns which partitions to release,
and gets partitions that no other member holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from pipelines.gold.advice.assignors import sticky
from pipelines.gold.advice.latencies import CONSUMER_HEARTBEAT_MS, CONSUMER_SESSION_MS, Latencies
from pipelines.gold.advice.replay import LIVES, Policy, Replay, Step
from pipelines.gold.churn import Churn, Resource
from schemas.states import GroupEventKind


@dataclass(slots=True, kw_only=True)
class _ConsumerMember:
    is_alive: bool = True
    life: int = 0
    beats: int = 0
    is_beating: bool = False
    released_at: int | None = None
    revoking: list[Resource] = field(default_factory=list)


class ConsumerReplay(Replay[_ConsumerMember]):
    """Replay under the consumer protocol. Epochs are counted as rebalances."""

    def __init__(self, churn: Churn, latencies: Latencies, policy: Policy, random: Random) -> None:
        super().__init__(churn, latencies, policy, random)
        self._heartbeat_ms = latencies.broker.heartbeat_ms or CONSUMER_HEARTBEAT_MS
        self._session_ms = policy.session_timeout_ms or latencies.broker.session_ms or CONSUMER_SESSION_MS
        self._interval_ms = latencies.broker.assignment_interval_ms or 0
        self._target = dict(self._owners)
        self._is_stale, self._computed_at = False, churn.start_ms - self._interval_ms
        self._refused: set[int] = set()
        self._given: dict[int, list[Resource]] = {}
        self._wanted: dict[int, list[Resource]] = {}

    def _steps(self) -> Mapping[str, Step]:
        return {
            "stop": self._stop,
            "back": self._back,
            "gone": self._gone,
            "heartbeat": self._heartbeat,
            "revoked": self._revoked,
        }

    def _joining_at(self, _: int) -> _ConsumerMember:
        return _ConsumerMember()

    def _stop(self, at: int, instance: int, number: int) -> None:
        who = self._current.get(instance, -1)
        if who not in self._members:
            return
        member, outage = self._members[who], self._churn.outages[number]
        member.is_alive = False
        self._account.stop(self._mine(who), at)
        leaves = outage.how in (GroupEventKind.LEFT, GroupEventKind.POLL_TIMEOUT)
        member.released_at = outage.gone_at if leaves else None
        if leaves and not self._policy.is_static:
            gone = outage.gone_at
        else:
            gone = self._session_ms + (outage.gone_at if outage.how == GroupEventKind.POLL_TIMEOUT else at)
        self._agenda.at(max(at, gone), "gone", who, member.life)

    def _gone(self, at: int, who: int, life: int) -> None:
        member = self._members.get(who)
        if member is None or member.life != life:
            return
        for resource in self._mine(who):
            del self._owners[resource]
        del self._members[who]
        self._rebalances += 1
        self._is_stale = True
        if self._members:
            self._wake(at)
        else:
            self._target = {}
            self._account.empty()
        if who // LIVES in self._refused:
            self._refused.discard(who // LIVES)
            self._agenda.at(at + self._random.randrange(self._heartbeat_ms), "back", who // LIVES)

    def _back(self, at: int, instance: int, _: int) -> None:
        who = self._current.get(instance, -1)
        member = self._members.get(who)
        if self._policy.is_static and member is not None and not member.is_alive:
            if member.released_at is None or at < member.released_at:
                # UNRELEASED_INSTANCE_ID, also while the previous process still closes. It returns after the session.
                self._refused.add(instance)
                return
            member.is_alive, member.is_beating, member.life = True, False, member.life + 1
            self._account.resume(self._mine(who), at + self._latencies.sync(self._random))
            if not self._is_settled():
                self._beat(at, who)
            return
        who = self._enter(instance, at)
        self._rebalances += 1
        self._is_stale = True
        self._beat(at, who)
        self._wake(at)

    def _wake(self, at: int) -> None:
        """Schedule heartbeats again; the time of each member's next heartbeat is random."""
        for who, member in self._members.items():
            if member.is_alive and not member.is_beating:
                self._schedule(at + self._random.randrange(self._heartbeat_ms), who)

    def _schedule(self, at: int, who: int) -> None:
        member = self._members[who]
        member.is_beating, member.beats = True, member.beats + 1
        self._agenda.at(at, "heartbeat", who, member.beats)

    def _heartbeat(self, at: int, who: int, tag: int) -> None:
        member = self._members.get(who)
        if member is not None and member.is_alive and member.beats == tag:
            self._beat(at, who)

    def _beat(self, at: int, who: int) -> None:
        member = self._members[who]
        if self._is_stale and at >= self._computed_at + self._interval_ms:
            topics = {m: self._churn.topics(m // LIVES) for m in self._members}
            self._target = sticky(self._churn.resources, topics, self._target)
            self._is_stale, self._computed_at = False, at
            self._plan()
        if not member.revoking:
            self._reconcile(at, who)
        if self._is_settled():
            member.is_beating = False
        elif not member.revoking:
            self._schedule(at + self._heartbeat_ms, who)

    def _plan(self) -> None:
        """Compute which partitions each member has to release, and which it gets."""
        self._given, self._wanted = defaultdict(list), defaultdict(list)
        for resource, owner in self._owners.items():
            if self._target.get(resource) != owner:
                self._given[owner].append(resource)
        for resource, member in self._target.items():
            if self._owners.get(resource) != member:
                self._wanted[member].append(resource)

    def _reconcile(self, at: int, who: int) -> None:
        member = self._members[who]
        member.revoking = [r for r in self._given.pop(who, ()) if self._owners.get(r) == who]
        if member.revoking:
            self._account.stop(member.revoking, at)
            self._agenda.at(at + self._latencies.rest(self._random), "revoked", who, member.life)
            return
        free = [r for r in self._wanted.get(who, ()) if r not in self._owners]
        self._owners |= dict.fromkeys(free, who)
        self._account.resume(free, at)

    def _revoked(self, at: int, who: int, life: int) -> None:
        """Release the revoked partitions; the member acknowledges the revocation with an extra heartbeat."""
        member = self._members.get(who)
        if member is None or member.life != life:
            return
        for resource in member.revoking:
            if self._owners.get(resource) == who:
                del self._owners[resource]
        member.revoking = []
        if member.is_alive:
            self._beat(at, who)

    def _is_settled(self) -> bool:
        return not self._is_stale and self._owners == self._target
