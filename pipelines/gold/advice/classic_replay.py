"""One replay of a group's churn under the classic protocol: JoinGroup, SyncGroup, heartbeats and session timeouts.

Source: Kafka's `ClassicGroup` and `ConsumerCoordinator`. A join phase stays open until all known members have rejoined.
An eager member releases everything before it joins; a cooperative member releases only the partitions that it loses
(KIP-429). A static member gets its previous assignment back when it returns (KIP-345).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random

from pipelines.gold.advice.assignors import assign, sticky
from pipelines.gold.advice.latencies import INITIAL_DELAY_MS, JOIN_EVERY_MS, LATE, SYNC_MS, Latencies
from pipelines.gold.advice.replay import MEMBERSHIPS_PER_INSTANCE, Policy, Replay, Step
from pipelines.gold.churn import Churn, Resource
from schemas.states import GroupEventKind

FIRST_HEARTBEAT_WINS = 0.25
"""Probability that a new librdkafka member's first heartbeat is late enough to learn of the second rebalance."""


@dataclass(slots=True, kw_only=True)
class _Member:
    is_alive: bool = True
    has_rejoined: bool = False
    joined_at: int
    heartbeat_at: int
    is_new: bool = True
    starts: int = 0


class _Phase(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicReplay(Replay[_Member]):
    """Replay under the classic protocol. Generations are counted as rebalances."""

    def __init__(self, churn: Churn, latencies: Latencies, policy: Policy, random: Random) -> None:
        super().__init__(churn, latencies, policy, random)
        self._usual_ms = latencies.heartbeat(random)
        self._heartbeat_ms = policy.heartbeat_interval_ms or self._usual_ms
        self._phase, self._round, self._not_before = _Phase.STABLE, 0, 0
        self._joining: set[int] = set()
        self._is_overtaken = False
        self._revoking: dict[int, int] = {}
        self._synced_at = churn.start_ms
        self._rebalance_ms = [i.memberships[-1].rebalance_timeout_ms for i in churn.instances]
        for at in churn.disturbances:
            self._agenda.at(at, "disturb")

    def _steps(self) -> Mapping[str, Step]:
        return {
            "stop": self._stop,
            "back": self._back,
            "gone": self._gone,
            "rejoin": self._rejoin,
            "check": self._check,
            "sync": self._sync,
            "revoked": self._revoked,
            "disturb": self._disturb,
            "timeout": self._timeout,
        }

    def _joining_at(self, at: int) -> _Member:
        return _Member(joined_at=at, heartbeat_at=at)

    def _stop(self, at: int, instance: int, number: int) -> None:
        """Stop a process. How it ended determines when the coordinator learns of it."""
        member_no = self._current.get(instance, -1)
        if member_no not in self._members:
            return
        member, outage = self._members[member_no], self._churn.outages[number]
        member.is_alive = False
        self._account.stop(self._mine(member_no), at)
        session = self._policy.session_timeout_ms
        if outage.departure_kind in (GroupEventKind.LEFT, GroupEventKind.POLL_TIMEOUT):
            silent = at if outage.departure_kind == GroupEventKind.LEFT else outage.gone_at
            gone = silent + (session or self._session(instance)) if self._policy.is_static else outage.gone_at
        else:
            gone = outage.gone_at if session is None else at + session
        self._agenda.at(max(at, gone), "gone", member_no, member.starts)

    def _session(self, instance: int) -> int:
        return self._churn.instances[instance].memberships[-1].session_timeout_ms

    def _gone(self, at: int, member_no: int, starts: int) -> None:
        member = self._members.get(member_no)
        if member is None or member.starts != starts:
            return
        del self._members[member_no]
        self._joining.discard(member_no)
        if self._phase == _Phase.STABLE:
            self._prepare(at, set())
        elif self._phase == _Phase.COMPLETING:
            self._is_overtaken = True
        else:
            self._check(at)

    def _back(self, at: int, instance: int, _: int) -> None:
        member_no = self._current.get(instance, -1)
        if self._policy.is_static and member_no in self._members and not self._members[member_no].is_alive:
            self._replace(at, member_no)
            return
        member_no = self._enter(instance, at)
        if self._phase == _Phase.EMPTY:
            self._not_before = at + (self._latencies.broker.initial_delay_ms or INITIAL_DELAY_MS)
        if self._phase in (_Phase.STABLE, _Phase.EMPTY):
            self._prepare(at, {member_no})
        elif self._phase == _Phase.PREPARING:
            self._members[member_no].has_rejoined = True
        else:
            self._joining.add(member_no)

    def _replace(self, at: int, member_no: int) -> None:
        """Add a static member's new process. The other members do not notice, unless a rebalance is in progress."""
        member = self._members[member_no]
        member.is_alive, member.joined_at, member.starts = True, at, member.starts + 1
        if self._phase == _Phase.STABLE:
            self._account.resume(self._mine(member_no), at + self._latencies.sync(self._random))
        elif self._phase == _Phase.PREPARING:
            member.has_rejoined = True
            self._check(at)
        else:
            self._joining.add(member_no)

    def _disturb(self, at: int, _: int, __: int) -> None:
        if self._phase == _Phase.STABLE:
            alive = [m for m, member in self._members.items() if member.is_alive]
            self._prepare(at, set(alive[:1]))

    def _begin(self, at: int, joined: set[int]) -> None:
        self._phase, self._round, self._is_overtaken = _Phase.PREPARING, self._round + 1, False
        self._revoking = {}
        for member_no, member in self._members.items():
            member.has_rejoined = member_no in joined
            if member_no in joined:
                member.joined_at = member.heartbeat_at = at
        longest = max([self._rebalance_ms[m // MEMBERSHIPS_PER_INSTANCE] for m in self._members], default=0)
        if longest:
            self._agenda.at(at + longest, "timeout", tag=self._round)

    def _prepare(self, at: int, joined: set[int]) -> None:
        """Begin a join phase. Members that have not joined notice it at their next heartbeat."""
        self._begin(at, joined | self._joining)
        self._joining = set()
        reaction = self._latencies.reaction(self._random, self._usual_ms)
        rest = min(reaction.rest_ms, SYNC_MS) if self._policy.is_cooperative else reaction.rest_ms
        waited = [m for m in self._members.values() if m.is_alive and not m.has_rejoined]
        noticing = map(self._sooner, reaction.noticing(self._random, len(waited)))
        for member_no, member in self._members.items():
            if not self._policy.is_cooperative and member.has_rejoined:
                self._account.stop(self._mine(member_no), at)
            if member.has_rejoined or not member.is_alive:
                continue
            noticed = at + next(noticing)
            if self._policy.is_cooperative:
                noticed = max(noticed, self._may_join(member))
            else:
                self._agenda.at(noticed, "revoked", member_no, self._round)
            self._agenda.at(noticed + rest, "rejoin", member_no, self._round)
        self._check(at)

    def _sooner(self, noticed_ms: int) -> int:
        """Return a measured noticing time, scaled to the heartbeat interval of the policy.

        A time longer than one heartbeat is not scaled, because the member was delayed by something else.
        """
        if noticed_ms > self._usual_ms * (1 + LATE):
            return noticed_ms
        return noticed_ms * self._heartbeat_ms // self._usual_ms

    def _may_join(self, member: _Member) -> int:
        """Return the earliest time at which a member may join again; 0 for no limit.

        librdkafka pauses between two joins. The pause ends when its main loop wakes up, at the latest to commit.
        """
        if not self._latencies.is_librdkafka:
            return 0
        return member.joined_at + JOIN_EVERY_MS + self._random.randrange(self._latencies.commit_ms + 1)

    def _revoked(self, at: int, member_no: int, tag: int) -> None:
        """Stop all resources of an eager member. A cooperative member has released its resources, so it rejoins."""
        if member_no not in self._members or tag != self._round:
            return
        if not self._policy.is_cooperative:
            self._account.stop(self._mine(member_no), at)
        elif self._phase == _Phase.STABLE:
            self._follow_up(at)

    def _follow_up(self, at: int) -> None:
        """Begin KIP-429's second rebalance, which assigns the released resources.

        Members that released nothing notice it at a heartbeat.
        """
        revoking = self._revoking
        self._begin(at, {member_no for member_no, done in revoking.items() if done <= at})
        for member_no, member in self._members.items():
            if member.has_rejoined or not member.is_alive:
                continue
            if member_no in revoking:
                rejoins = revoking[member_no]
            elif self._latencies.is_librdkafka:
                rejoins = max(self._next_heartbeat(at, member), self._may_join(member))
            else:
                # The Java client restarts its heartbeat interval with each assignment.
                rejoins = self._synced_at + self._heartbeat_ms
            self._agenda.at(max(at, rejoins), "rejoin", member_no, self._round)
        self._check(at)

    def _next_heartbeat(self, at: int, member: _Member) -> int:
        """Return the time of a member's next heartbeat.

        A new member sends one as soon as it has joined, which may be before or after the others have rejoined.
        """
        if member.is_new and self._random.random() < FIRST_HEARTBEAT_WINS:
            return at
        passed = max(0, at - member.heartbeat_at) // self._heartbeat_ms + 1
        return member.heartbeat_at + passed * self._heartbeat_ms

    def _rejoin(self, at: int, member_no: int, tag: int) -> None:
        member = self._members.get(member_no)
        if member is None or tag != self._round or not member.is_alive:
            return
        member.has_rejoined, member.is_new = True, False
        member.joined_at = member.heartbeat_at = at
        self._check(at)

    def _timeout(self, at: int, _: int, tag: int) -> None:
        """Remove members that have not rejoined within max.poll.interval.ms."""
        if tag != self._round or self._phase != _Phase.PREPARING:
            return
        self._members = {member_no: m for member_no, m in self._members.items() if m.has_rejoined}
        self._check(at)

    def _check(self, at: int, _: int = -1, __: int = 0) -> None:
        """End the join phase if all members have rejoined."""
        if self._phase != _Phase.PREPARING:
            return
        # A generator for `all` would take most of the time of a replay's most frequent step.
        for member in self._members.values():
            if not member.has_rejoined:
                return
        if at < self._not_before and self._members:
            self._agenda.at(self._not_before, "check")
            return
        self._rebalances += 1
        if not self._members:
            self._phase = _Phase.EMPTY
            self._owners = {}
            self._account.empty()
            return
        self._phase = _Phase.COMPLETING
        self._agenda.at(at + self._latencies.sync(self._random), "sync", tag=self._round)

    def _sync(self, at: int, _: int, tag: int) -> None:
        if tag != self._round:
            return
        self._phase, self._synced_at = _Phase.STABLE, at
        topics = {member_no: self._churn.topics(member_no // MEMBERSHIPS_PER_INSTANCE) for member_no in self._members}
        before = {r: owner for r, owner in self._owners.items() if owner in topics}
        if self._policy.is_cooperative:
            self._hand_over(at, before, sticky(self._churn.resources, topics, before))
        else:
            self._owners = assign(self._churn.assignor, self._churn.resources, topics, before)
            self._resume(at, self._owners)
        if self._is_overtaken or self._joining:
            self._prepare(at, set())

    def _hand_over(self, at: int, before: dict[Resource, int], target: dict[Resource, int]) -> None:
        """Assign resources without an owner at once. Resources that move must be released first."""
        moving = {r: owner for r, owner in before.items() if target.get(r) != owner}
        fresh = {r: owner for r, owner in target.items() if r not in before}
        self._owners = {r: owner for r, owner in before.items() if r not in moving} | fresh
        self._resume(at, self._owners)
        self._account.stop(moving, at)
        for member_no in sorted(set(moving.values())):
            if self._members[member_no].is_alive:
                self._revoking[member_no] = at + self._latencies.rest(self._random)
                self._agenda.at(self._revoking[member_no], "revoked", member_no, self._round)

    def _resume(self, at: int, owners: dict[Resource, int]) -> None:
        absent = {member_no for member_no, member in self._members.items() if not member.is_alive}
        self._account.resume([r for r, owner in owners.items() if owner not in absent], at)
        self._account.stop([r for r, owner in owners.items() if owner in absent], at)
