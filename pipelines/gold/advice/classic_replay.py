"""One replay of a group's churn under the classic protocol: JoinGroup, SyncGroup, heartbeats and session timeouts.

After `ClassicGroup` and `ConsumerCoordinator`: a join phase stays open until all known members have rejoined; an eager
member gives up everything first, a cooperative one only what it learns to lose (KIP-429), and a static one comes back
under its old place (KIP-345).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from random import Random

from pipelines.gold.advice.assignors import assign, sticky
from pipelines.gold.advice.latencies import INITIAL_DELAY_MS, JOIN_EVERY_MS, LATE, SYNC_MS, Latencies
from pipelines.gold.advice.replay import LIVES, Policy, Replay, Step
from pipelines.gold.churn import Churn, Resource
from schemas.states import GroupEventKind

FIRST_HEARTBEAT_WINS = 0.25
"""How often librdkafka's first heartbeat of a new member comes late enough to tell it of the second rebalance."""


@dataclass(slots=True, kw_only=True)
class _Member:
    is_alive: bool = True
    has_rejoined: bool = False
    joined_at: int
    heartbeat_at: int
    is_new: bool = True
    life: int = 0


class _Phase(Enum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


class ClassicReplay(Replay[_Member]):
    """Generations are counted as rebalances."""

    def __init__(self, churn: Churn, latencies: Latencies, policy: Policy, random: Random) -> None:
        super().__init__(churn, latencies, policy, random)
        self._usual_ms = latencies.heartbeat(random)
        self._heartbeat_ms = policy.heartbeat_interval_ms or self._usual_ms
        self._phase, self._round, self._not_before = _Phase.STABLE, 0, 0
        self._joining: set[int] = set()
        self._is_overtaken = False
        self._revoking: dict[int, int] = {}
        self._synced_at = churn.start_ms
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
        """The process works no more; when the coordinator learns of it hangs on how it ended."""
        who = self._current.get(instance, -1)
        if who not in self._members:
            return
        member, outage = self._members[who], self._churn.outages[number]
        member.is_alive = False
        self._account.stop(self._mine(who), at)
        session = self._policy.session_timeout_ms
        if outage.how in (GroupEventKind.LEFT, GroupEventKind.POLL_TIMEOUT):
            silent = at if outage.how == GroupEventKind.LEFT else outage.gone_at
            gone = silent + (session or self._session(instance)) if self._policy.is_static else outage.gone_at
        else:
            gone = outage.gone_at if session is None else at + session
        self._agenda.at(max(at, gone), "gone", who, member.life)

    def _session(self, instance: int) -> int:
        return self._churn.instances[instance].memberships[-1].session_timeout_ms

    def _gone(self, at: int, who: int, life: int) -> None:
        member = self._members.get(who)
        if member is None or member.life != life:
            return
        del self._members[who]
        self._joining.discard(who)
        if self._phase == _Phase.STABLE:
            self._prepare(at, set())
        elif self._phase == _Phase.COMPLETING:
            self._is_overtaken = True
        else:
            self._check(at)

    def _back(self, at: int, instance: int, _: int) -> None:
        who = self._current.get(instance, -1)
        if self._policy.is_static and who in self._members and not self._members[who].is_alive:
            self._replace(at, who)
            return
        who = self._enter(instance, at)
        if self._phase == _Phase.EMPTY:
            self._not_before = at + (self._latencies.broker.initial_delay_ms or INITIAL_DELAY_MS)
        if self._phase in (_Phase.STABLE, _Phase.EMPTY):
            self._prepare(at, {who})
        elif self._phase == _Phase.PREPARING:
            self._members[who].has_rejoined = True
        else:
            self._joining.add(who)

    def _replace(self, at: int, who: int) -> None:
        """A static member's new process: nobody else notices, unless a rebalance is under way."""
        member = self._members[who]
        member.is_alive, member.joined_at, member.life = True, at, member.life + 1
        if self._phase == _Phase.STABLE:
            self._account.resume(self._mine(who), at + self._latencies.sync(self._random))
        elif self._phase == _Phase.PREPARING:
            member.has_rejoined = True
            self._check(at)
        else:
            self._joining.add(who)

    def _disturb(self, at: int, _: int, __: int) -> None:
        if self._phase == _Phase.STABLE:
            alive = [m for m, member in self._members.items() if member.is_alive]
            self._prepare(at, set(alive[:1]))

    def _begin(self, at: int, joined: set[int]) -> None:
        self._phase, self._round, self._is_overtaken = _Phase.PREPARING, self._round + 1, False
        self._revoking = {}
        for who, member in self._members.items():
            member.has_rejoined = who in joined
            if who in joined:
                member.joined_at = member.heartbeat_at = at
        longest = max(
            (self._churn.instances[w // LIVES].memberships[-1].rebalance_timeout_ms for w in self._members), default=0
        )
        if longest:
            self._agenda.at(at + longest, "timeout", tag=self._round)

    def _prepare(self, at: int, joined: set[int]) -> None:
        """Everybody else notices at its next heartbeat."""
        self._begin(at, joined | self._joining)
        self._joining = set()
        reaction = self._latencies.reaction(self._random, self._usual_ms)
        rest = min(reaction.rest_ms, SYNC_MS) if self._policy.is_cooperative else reaction.rest_ms
        waited = [m for m in self._members.values() if m.is_alive and not m.has_rejoined]
        noticing = map(self._sooner, reaction.noticing(self._random, len(waited)))
        for who, member in self._members.items():
            if not self._policy.is_cooperative and member.has_rejoined:
                self._account.stop(self._mine(who), at)
            if member.has_rejoined or not member.is_alive:
                continue
            noticed = at + next(noticing)
            if self._policy.is_cooperative:
                noticed = max(noticed, self._may_join(member))
            else:
                self._agenda.at(noticed, "revoked", who, self._round)
            self._agenda.at(noticed + rest, "rejoin", who, self._round)
        self._check(at)

    def _sooner(self, noticed_ms: int) -> int:
        """As measured, at another interval. Who took longer than a heartbeat was held up, and still is."""
        if noticed_ms > self._usual_ms * (1 + LATE):
            return noticed_ms
        return noticed_ms * self._heartbeat_ms // self._usual_ms

    def _may_join(self, member: _Member) -> int:
        """The pause between two joins of librdkafka ends when its main loop wakes up next, at the latest to commit."""
        if not self._latencies.is_librdkafka:
            return 0
        return member.joined_at + JOIN_EVERY_MS + self._random.randrange(self._latencies.commit_ms + 1)

    def _revoked(self, at: int, who: int, tag: int) -> None:
        """Eager: the member gives up everything. Cooperative: it has given up what it should, and so rejoins."""
        if who not in self._members or tag != self._round:
            return
        if not self._policy.is_cooperative:
            self._account.stop(self._mine(who), at)
        elif self._phase == _Phase.STABLE:
            self._follow_up(at)

    def _follow_up(self, at: int) -> None:
        """KIP-429's second rebalance: whoever gave nothing up notices at a heartbeat, and nobody has what was given."""
        revoking = self._revoking
        self._begin(at, {who for who, done in revoking.items() if done <= at})
        for who, member in self._members.items():
            if member.has_rejoined or not member.is_alive:
                continue
            if who in revoking:
                rejoins = revoking[who]
            elif self._latencies.is_librdkafka:
                rejoins = max(self._next_heartbeat(at, member), self._may_join(member))
            else:
                # The Java client begins its heartbeats anew with each assignment.
                rejoins = self._synced_at + self._heartbeat_ms
            self._agenda.at(max(at, rejoins), "rejoin", who, self._round)
        self._check(at)

    def _next_heartbeat(self, at: int, member: _Member) -> int:
        """A new member sends one as soon as it is in, which may or may not be after the others have rejoined."""
        if member.is_new and self._random.random() < FIRST_HEARTBEAT_WINS:
            return at
        passed = max(0, at - member.heartbeat_at) // self._heartbeat_ms + 1
        return member.heartbeat_at + passed * self._heartbeat_ms

    def _rejoin(self, at: int, who: int, tag: int) -> None:
        member = self._members.get(who)
        if member is None or tag != self._round or not member.is_alive:
            return
        member.has_rejoined, member.is_new = True, False
        member.joined_at = member.heartbeat_at = at
        self._check(at)

    def _timeout(self, at: int, _: int, tag: int) -> None:
        """max.poll.interval.ms: whoever has not rejoined is out."""
        if tag != self._round or self._phase != _Phase.PREPARING:
            return
        self._members = {who: m for who, m in self._members.items() if m.has_rejoined}
        self._check(at)

    def _check(self, at: int, _: int = -1, __: int = 0) -> None:
        """The join phase ends once nobody is missing."""
        if self._phase != _Phase.PREPARING or not all(m.has_rejoined for m in self._members.values()):
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
        topics = {who: self._churn.topics(who // LIVES) for who in self._members}
        before = {r: owner for r, owner in self._owners.items() if owner in topics}
        if self._policy.is_cooperative:
            self._hand_over(at, before, sticky(self._churn.resources, topics, before))
        else:
            self._owners = assign(self._churn.assignor, self._churn.resources, topics, before)
            self._resume(at, self._owners)
        if self._is_overtaken or self._joining:
            self._prepare(at, set())

    def _hand_over(self, at: int, before: dict[Resource, int], target: dict[Resource, int]) -> None:
        """Only what nobody has is given at once; what moves is first given up."""
        moving = {r: owner for r, owner in before.items() if target.get(r) != owner}
        fresh = {r: owner for r, owner in target.items() if r not in before}
        self._owners = {r: owner for r, owner in before.items() if r not in moving} | fresh
        self._resume(at, self._owners)
        self._account.stop(moving, at)
        for who in sorted(set(moving.values())):
            if self._members[who].is_alive:
                self._revoking[who] = at + self._latencies.rest(self._random)
                self._agenda.at(self._revoking[who], "revoked", who, self._round)

    def _resume(self, at: int, owners: dict[Resource, int]) -> None:
        for resource, owner in owners.items():
            if self._members[owner].is_alive:
                self._account.resume((resource,), at)
            else:
                self._account.stop((resource,), at)
