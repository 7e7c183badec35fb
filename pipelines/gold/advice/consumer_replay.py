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
from pipelines.gold.advice.replay import MEMBERSHIPS_PER_INSTANCE, Policy, Replay, Step
from pipelines.gold.churn import Churn, Resource
from schemas.states import GroupEventKind


@dataclass(slots=True, kw_only=True)
class _ConsumerMember:
    is_alive: bool = True
    starts: int = 0
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
        self._targets: dict[int, list[Resource]] = {}
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
        member_no = self._current.get(instance, -1)
        if member_no not in self._members:
            return
        member, outage = self._members[member_no], self._churn.outages[number]
        member.is_alive = False
        self._account.stop(self._mine(member_no), at)
        leaves = outage.departure_kind in (GroupEventKind.LEFT, GroupEventKind.POLL_TIMEOUT)
        member.released_at = outage.gone_at if leaves else None
        if leaves and not self._policy.is_static:
            gone = outage.gone_at
        else:
            gone = self._session_ms + (outage.gone_at if outage.departure_kind == GroupEventKind.POLL_TIMEOUT else at)
        self._agenda.at(max(at, gone), "gone", member_no, member.starts)

    def _gone(self, at: int, member_no: int, starts: int) -> None:
        member = self._members.get(member_no)
        if member is None or member.starts != starts:
            return
        for resource in self._mine(member_no):
            del self._owners[resource]
        del self._members[member_no]
        self._rebalances += 1
        self._is_stale = True
        if self._members:
            self._wake(at)
        else:
            self._target = {}
            self._account.empty()
        if member_no // MEMBERSHIPS_PER_INSTANCE in self._refused:
            self._refused.discard(member_no // MEMBERSHIPS_PER_INSTANCE)
            self._agenda.at(
                at + self._random.randrange(self._heartbeat_ms), "back", member_no // MEMBERSHIPS_PER_INSTANCE
            )

    def _back(self, at: int, instance: int, _: int) -> None:
        member_no = self._current.get(instance, -1)
        member = self._members.get(member_no)
        if self._policy.is_static and member is not None and not member.is_alive:
            if member.released_at is None or at < member.released_at:
                # UNRELEASED_INSTANCE_ID, also while the previous process still closes. It returns after the session.
                self._refused.add(instance)
                return
            member.is_alive, member.is_beating, member.starts = True, False, member.starts + 1
            self._account.resume(self._mine(member_no), at + self._latencies.sync(self._random))
            if not self._is_settled():
                self._beat(at, member_no)
            return
        member_no = self._enter(instance, at)
        self._rebalances += 1
        self._is_stale = True
        self._beat(at, member_no)
        self._wake(at)

    def _wake(self, at: int) -> None:
        """Schedule heartbeats again; the time of each member's next heartbeat is random."""
        for member_no, member in self._members.items():
            if member.is_alive and not member.is_beating:
                self._schedule(at + self._random.randrange(self._heartbeat_ms), member_no)

    def _schedule(self, at: int, member_no: int) -> None:
        member = self._members[member_no]
        member.is_beating, member.beats = True, member.beats + 1
        self._agenda.at(at, "heartbeat", member_no, member.beats)

    def _heartbeat(self, at: int, member_no: int, tag: int) -> None:
        member = self._members.get(member_no)
        if member is not None and member.is_alive and member.beats == tag:
            self._beat(at, member_no)

    def _beat(self, at: int, member_no: int) -> None:
        member = self._members[member_no]
        if self._is_stale and at >= self._computed_at + self._interval_ms:
            topics = {m: self._churn.topics(m // MEMBERSHIPS_PER_INSTANCE) for m in self._members}
            self._target = sticky(self._churn.resources, topics, self._target)
            self._is_stale, self._computed_at = False, at
            self._plan()
        if not member.revoking:
            self._reconcile(at, member_no)
        if self._is_settled():
            member.is_beating = False
        elif not member.revoking:
            self._schedule(at + self._heartbeat_ms, member_no)

    def _plan(self) -> None:
        """Compute which partitions each member has to release, and which it gets."""
        self._targets, self._wanted = defaultdict(list), defaultdict(list)
        for resource, owner in self._owners.items():
            if self._target.get(resource) != owner:
                self._targets[owner].append(resource)
        for resource, member in self._target.items():
            if self._owners.get(resource) != member:
                self._wanted[member].append(resource)

    def _reconcile(self, at: int, member_no: int) -> None:
        member = self._members[member_no]
        member.revoking = [r for r in self._targets.pop(member_no, ()) if self._owners.get(r) == member_no]
        if member.revoking:
            self._account.stop(member.revoking, at)
            self._agenda.at(at + self._latencies.rest(self._random), "revoked", member_no, member.starts)
            return
        free = [r for r in self._wanted.get(member_no, ()) if r not in self._owners]
        self._owners |= dict.fromkeys(free, member_no)
        self._account.resume(free, at)

    def _revoked(self, at: int, member_no: int, starts: int) -> None:
        """Release the revoked partitions; the member acknowledges the revocation with an extra heartbeat."""
        member = self._members.get(member_no)
        if member is None or member.starts != starts:
            return
        for resource in member.revoking:
            if self._owners.get(resource) == member_no:
                del self._owners[resource]
        member.revoking = []
        if member.is_alive:
            self._beat(at, member_no)

    def _is_settled(self) -> bool:
        return not self._is_stale and self._owners == self._target
