"""The cause of each rebalance of a group, and the event that started it.

`context` analyzes all rows of a group once; `cause_of` then returns the cause of each generation. Both are pure
functions. They do not need the whole history: anything before the given rows counts as unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from pipelines.gold.diagnosis.departures import Departure, arrivals_of_replacements, departures
from pipelines.gold.diagnosis.patterns import changed, flapping, switching
from pipelines.gold.diagnosis.slow_joins import held_up, slow
from pipelines.gold.instance_tracker import Instance, Membership, Number
from pipelines.gold.memberships import Silver, number, tracked
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from pipelines.gold.rejoin_runs import GroupLife, expelling_runs, unchanged_runs
from schemas.rows import GenerationRow, StallRow
from schemas.states import (
    NORMAL_CAUSES,
    DiagnosisCause,
    Evidence,
    GroupEventKind,
    GroupProtocol,
    GroupType,
    StallCause,
    Trigger,
)
from schemas.thresholds import FAILOVER_MS, PATTERN_MS, TOGETHER_MS, VERY_SLOW_MS, failover_ms

STORING = "the assignment could not be stored"

DIRECT: Mapping[str, DiagnosisCause] = {
    Trigger.COOPERATIVE_FOLLOWUP: DiagnosisCause.FOLLOW_UPS,
    Trigger.PROBING: DiagnosisCause.PROBING,
    Trigger.CONNECT_DELAY_EXPIRED: DiagnosisCause.CONNECT_DELAY,
    Trigger.UPGRADE: DiagnosisCause.MIXED_PROTOCOLS,
    Trigger.DOWNGRADE: DiagnosisCause.MIXED_PROTOCOLS,
    Trigger.ASSIGNMENT_FAILED: DiagnosisCause.COORDINATOR,
    Trigger.SUBSCRIPTION_CHANGED: DiagnosisCause.TOPIC_CHANGES,
}
"""Triggers that determine the cause."""

DROPPED: Mapping[str, DiagnosisCause] = {
    Trigger.POLL_TIMEOUT: DiagnosisCause.POLL_TIMEOUT,
    # A consumer's rebalance timeout is its max.poll.interval.ms (KIP-62), so a member that did not join did not poll.
    Trigger.REJOIN_TIMEOUT: DiagnosisCause.POLL_TIMEOUT,
    Trigger.SYNC_TIMEOUT: DiagnosisCause.POLL_TIMEOUT,
    Trigger.SESSION_EXPIRED: DiagnosisCause.SESSION_EXPIRY,
}
"""Triggers that show how a member left. All its departures together may show a different cause."""

SEVERITY = (
    DiagnosisCause.COORDINATOR,
    DiagnosisCause.CRASH_LOOP,
    DiagnosisCause.POD_FAILURE,
    DiagnosisCause.POLL_TIMEOUT,
    DiagnosisCause.SESSION_EXPIRY,
    DiagnosisCause.UNKNOWN,
    DiagnosisCause.DEPLOY,
    DiagnosisCause.SCALING,
)
"""Precedence of causes if several members joined or left at once and none is named: failures before planned changes."""

WAITED_FOR = (*DROPPED.values(), DiagnosisCause.POD_FAILURE)
"""Causes of departures of members that the others may have waited for in vain."""

REJOINED = (Trigger.LEADER_REJOINED, Trigger.METADATA_CHANGED, Trigger.UNKNOWN)
BY_COORDINATOR_MOVE = (
    Trigger.SESSION_EXPIRED,
    Trigger.SYNC_TIMEOUT,
    Trigger.REJOIN_TIMEOUT,
    Trigger.LEADER_REJOINED,
    Trigger.UNKNOWN,
)
"""Triggers of rebalances that a move of the coordinator may cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Why a rebalance happened, and how that is known.

    `cause` is the cause to investigate; `set_off_by` is the cause that started the rebalance. They differ if one member
    delays the others, for example in a deploy: it joins late, or is removed because it does not join. `instances` are
    the names of the instances involved, as `instance_tracker` distinguishes them. `waited_ms` is how long the others
    waited for a slow member; if no log line names it, there are no `instances`.
    """

    cause: DiagnosisCause
    set_off_by: DiagnosisCause
    evidence: Evidence
    instances: tuple[str, ...] = ()
    waited_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The start of a membership. `after` is the departure that it follows, or None for an instance not seen before."""

    instance: Instance
    membership: Membership
    after: Departure | None
    cause: DiagnosisCause
    evidence: Evidence


Change = Departure | Arrival
C = TypeVar("C", Departure, Arrival)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Facts about all rebalances of a group.

    By generation: `departures` and `arrivals` with it, the `previous` generation, the `slow` member that the others
    waited for, the milliseconds for which an unknown member `held_up` the others, whether the resources `changed`, and
    whether it belongs to a run that changes nothing (`looping`) or in which members expel each other (`expelling`). A
    rebalance was `interrupted` if another broker became the coordinator before it completed. `returns` are departures
    of static members that returned without a rebalance. Timestamps are in milliseconds.
    """

    instances: Sequence[Instance]
    departures: Mapping[Number, Sequence[Departure]]
    arrivals: Mapping[Number, Sequence[Arrival]]
    previous: Mapping[Number, GenerationRow]
    slow: Mapping[Number, Instance]
    held_up: Mapping[Number, int]
    changed: frozenset[Number]
    flapping: frozenset[Number]
    switching: frozenset[Number]
    looping: frozenset[Number]
    expelling: frozenset[Number]
    interrupted: frozenset[Number]
    returns: Sequence[Departure]
    moved_at: Sequence[int]
    not_stored_at: Sequence[int]

    def changes(self, g: GenerationRow) -> list[Change]:
        """Return the departures and arrivals with a generation."""
        return [*self.departures.get(number(g), ()), *self.arrivals.get(number(g), ())]

    def name(self, member_id: str | None) -> str | None:
        """Return the name of the member's instance, or None if the member is unknown."""
        mine = (p.label for p in self.instances if any(s.member_id == member_id for s in p.memberships))
        return next(mine, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Why:
    cause: DiagnosisCause
    evidence: Evidence
    names: tuple[str, ...] = ()


def context(silver: Silver, pods: PodIndex = NO_PODS) -> Context:
    """Return the facts about the rebalances of one group.

    `silver` holds the group's generations, generation_members and group_events, in any order, and stalls if they are
    known. The rows may begin anywhere in the history. The first generation only shows which members were present.
    `pods` are the pods of the cluster.
    """
    generations = sorted(silver["generations"], key=number)
    found = tracked(silver)
    gone = departures(found, leaves_on_close=not any(never_leaves(g) for g in generations), pods=pods)
    other = frozenset(changed(generations, silver["generation_members"]))
    life = GroupLife.of(silver)
    moved_at = _instants(silver, GroupEventKind.COORDINATOR_MOVED)
    return Context(
        instances=found,
        departures=_by_generation(gone, lambda d: d.membership.left_in),
        arrivals=_by_generation(_arrivals(found, gone), lambda a: a.membership.joined_in),
        previous={number(g): before for before, g in pairwise(generations)},
        slow=dict(slow(generations, found)),
        held_up=dict(held_up(generations, silver.get("stalls", ()))),
        changed=other,
        flapping=frozenset(flapping(generations, other)),
        switching=frozenset(switching(generations)),
        looping=frozenset(number(g) for run in unchanged_runs(life) for g in run),
        expelling=frozenset(number(g) for run in expelling_runs(life) for g in run),
        interrupted=frozenset(_interrupted(generations, silver.get("stalls", ()), moved_at)),
        returns=[d for d in gone if d.membership.left_in is None],
        moved_at=moved_at,
        not_stored_at=_instants(silver, GroupEventKind.FAILED_REBALANCE, STORING),
    )


def cause_of(g: GenerationRow, known: Context) -> Found:
    """Return the cause of a generation, which must be one of the rows that `known` was made from.

    The cause is `UNKNOWN` if records and log lines do not show it.
    """
    why, last = _set_off(g, known), known.slow.get(number(g))
    is_delayable = why.cause in (*NORMAL_CAUSES, DiagnosisCause.TOPIC_CHANGES)
    if is_delayable and (removed := _waited_for(g, known)) is not None:
        return Found(
            cause=removed.cause,
            set_off_by=why.cause,
            evidence=removed.evidence,
            instances=(removed.instance.label,),
        )
    # Without the log, it is often not known what started the rebalance, either.
    is_held_up = number(g) in known.held_up and (is_delayable or why.cause == DiagnosisCause.UNKNOWN)
    if (is_delayable and last is not None) or is_held_up:
        return Found(
            cause=DiagnosisCause.SLOW_JOINER,
            set_off_by=why.cause,
            evidence=Evidence.INFERRED,
            instances=() if last is None else (last.label,),
            waited_ms=known.held_up.get(number(g), 0) if last is None else g["slowest_waited_ms"] or 0,
        )
    return Found(cause=why.cause, set_off_by=why.cause, evidence=why.evidence, instances=why.names)


def _waited_for(g: GenerationRow, known: Context) -> Departure | None:
    """Return the member that the others waited for in vain, until the coordinator removed it; None if there is none."""
    if g["prepared_at"] is None:
        return None
    since = g["prepared_at"] + VERY_SLOW_MS
    gone = known.departures.get(number(g), ())
    return next((d for d in gone if d.cause in WAITED_FOR and since <= d.at <= g["joined_at"]), None)


def _set_off(g: GenerationRow, known: Context) -> _Why:
    logged = Evidence(g["trigger_evidence"] or Evidence.INFERRED)
    changes, names = known.changes(g), tuple(dict.fromkeys(c.instance.label for c in known.changes(g)))
    is_interrupted = number(g) in known.interrupted
    if is_interrupted or _is_coordinator_moved(g, known):
        evidence = Evidence.OBSERVED if is_interrupted else Evidence.INFERRED
        return _Why(cause=DiagnosisCause.COORDINATOR, evidence=evidence, names=names)
    direct = DiagnosisCause.FOLLOW_UPS if _is_resolved(g, known) else DIRECT.get(g["trigger"])
    if direct is not None:
        return _Why(cause=direct, evidence=logged, names=names or _named(g, known))
    if number(g) in known.switching:
        return _Why(cause=DiagnosisCause.MIXED_PROTOCOLS, evidence=Evidence.OBSERVED, names=names)
    if changes:
        return _of_changes(g, changes, known)
    if g["trigger"] in DROPPED:
        return _Why(cause=DROPPED[g["trigger"]], evidence=logged, names=_named(g, known))
    return _of_rejoining(g, known, logged)


def _named(g: GenerationRow, known: Context) -> tuple[str, ...]:
    name = known.name(g["trigger_member_id"])
    return () if name is None else (name,)


def _of_changes(g: GenerationRow, changes: Sequence[Change], known: Context) -> _Why:
    """Return the cause of the member that the trigger names; if it names none, the most severe cause of all changes."""
    if number(g) in known.expelling:
        names = tuple(dict.fromkeys(c.instance.label for c in changes))
        return _Why(cause=DiagnosisCause.REJOIN_LOOP, evidence=Evidence.INFERRED, names=names)
    judged = [(c, _after_failover(c, known) or c.cause) for c in changes]
    named = [cause for c, cause in judged if c.membership.member_id == g["trigger_member_id"]]
    worst = min(named or [cause for _, cause in judged], key=SEVERITY.index)
    mine = [c for c, cause in judged if cause == worst]
    # That a member lost its place because the coordinator moved follows from the times only.
    is_observed = worst != DiagnosisCause.COORDINATOR and all(c.evidence == Evidence.OBSERVED for c in mine)
    return _Why(
        cause=worst,
        evidence=Evidence.OBSERVED if is_observed else Evidence.INFERRED,
        names=tuple(dict.fromkeys(c.instance.label for c in mine)),
    )


def _after_failover(change: Change, known: Context) -> DiagnosisCause | None:
    """Return the coordinator as cause if a member returns that was removed in a failover, else None."""
    if isinstance(change, Departure) or change.after is None or not _is_dropped(change.after):
        return None
    session = change.after.membership.session_timeout_ms
    return DiagnosisCause.COORDINATOR if _is_near(change.after.at, session, known.moved_at) else None


def _is_dropped(d: Departure) -> bool:
    return d.membership.departure_kind in (None, GroupEventKind.SESSION_EXPIRED)


def _is_coordinator_moved(g: GenerationRow, known: Context) -> bool:
    """Return whether the coordinator moved, or could not store the leader's assignment, shortly before."""
    before = known.previous.get(number(g))
    since = before["joined_at"] if before is not None else g["joined_at"] - FAILOVER_MS
    if any(since < at <= g["joined_at"] for at in known.not_stored_at):
        return True
    began = g["prepared_at"] if g["prepared_at"] is not None else g["joined_at"]
    gone = known.departures.get(number(g), ())
    if g["trigger"] in BY_COORDINATOR_MOVE:
        return _is_near(began, max((d.membership.session_timeout_ms for d in gone), default=0), known.moved_at)
    if not _is_near(began, 0, known.moved_at):
        return False
    arrivals = known.arrivals.get(number(g), ())
    again = {a.instance.label for a in arrivals}
    # A member that the new coordinator does not know joins anew, while its old membership is still in the group.
    is_anew = any(
        a.after is not None
        and a.after.at >= a.membership.arrived_at
        and a.after.membership.departure_kind != GroupEventKind.LEFT
        for a in arrivals
    )
    is_retry = bool(arrivals) and before is not None and any(0 <= began - at <= TOGETHER_MS for at in known.moved_at)
    return is_anew or is_retry or any(d.instance.label in again and _is_dropped(d) for d in gone)


def _interrupted(
    generations: Sequence[GenerationRow], stalls: Iterable[StallRow], moved_at: Sequence[int]
) -> Iterator[Number]:
    """Yield the rebalances during which another broker loaded the group. Silver marks the stalls of most of them."""
    yield from ((s["incarnation"], s["generation_id"]) for s in stalls if s["cause"] == StallCause.FAILOVER)
    for g in generations:
        began, ended = g["prepared_at"], g["completed_at"] or g["joined_at"]
        if began is not None and any(began <= at <= ended for at in moved_at):
            yield number(g)


def _is_resolved(g: GenerationRow, known: Context) -> bool:
    """Return whether the epoch was incremented because a new member's pattern was resolved.

    KIP-848: the coordinator resolves a pattern asynchronously and increments the epoch again afterwards.
    """
    before = known.previous.get(number(g))
    return (
        before is not None
        and g["group_protocol"] == GroupProtocol.CONSUMER
        and g["trigger"] == Trigger.SUBSCRIPTION_CHANGED
        and bool(known.arrivals.get(number(before)))
        and g["joined_at"] - before["joined_at"] <= PATTERN_MS
    )


def _is_near(at: int, session_ms: int, moved_at: Sequence[int]) -> bool:
    """Return whether `at` follows soon after the coordinator moved.

    Sessions restart when the group is loaded, so a member that lost its connection expires one session timeout later.
    """
    return any(moved <= at <= moved + failover_ms(session_ms) for moved in moved_at)


def _of_rejoining(g: GenerationRow, known: Context, logged: Evidence) -> _Why:
    """Return the cause of a rebalance of unchanged members: their resources changed, or the cause is another one."""
    is_reported = logged == Evidence.OBSERVED and g["trigger"] == Trigger.METADATA_CHANGED
    is_configured = g["group_type"] == GroupType.CONNECT and g["trigger"] == Trigger.METADATA_CHANGED
    if g["trigger"] == Trigger.STATIC_MEMBER_CHANGED:
        before = known.previous.get(number(g), g)
        is_other = g["assignor"] != before["assignor"]
        cause = DiagnosisCause.MIXED_PROTOCOLS if is_other else DiagnosisCause.DEPLOY
        return _Why(cause=cause, evidence=Evidence.INFERRED, names=_named(g, known))
    if number(g) in known.flapping:
        return _Why(cause=DiagnosisCause.LEADER_FLAPPING, evidence=logged, names=_named(g, known))
    is_changed = g["trigger"] in REJOINED and number(g) in known.changed
    if is_reported or is_configured or is_changed:
        evidence = logged if is_reported or is_configured else Evidence.INFERRED
        return _Why(cause=DiagnosisCause.TOPIC_CHANGES, evidence=evidence)
    cause = DiagnosisCause.REJOIN_LOOP if number(g) in known.looping else DiagnosisCause.UNKNOWN
    return _Why(cause=cause, evidence=Evidence.INFERRED, names=_named(g, known))


def never_leaves(g: GenerationRow) -> bool:
    """Return whether the members stay in the group when they close, as in classic Kafka Streams.

    Source: `internal.leave.group.on.close`.
    """
    return bool(g["group_type"] == GroupType.STREAMS and g["group_protocol"] == GroupProtocol.CLASSIC)


def _arrivals(found: Sequence[Instance], gone: Sequence[Departure]) -> Iterator[Arrival]:
    before = {id(d.back): d for d in gone if d.back is not None}
    replacing = arrivals_of_replacements(gone, found)
    for instance in found:
        for membership in instance.memberships:
            after = before.get(id(membership))
            first = DiagnosisCause.DEPLOY if instance.number in replacing else DiagnosisCause.SCALING
            yield Arrival(
                instance=instance,
                membership=membership,
                after=after,
                cause=first if after is None else after.cause,
                evidence=Evidence.INFERRED if after is None else after.evidence,
            )


def _by_generation(found: Iterable[C], at: Callable[[C], Number | None]) -> dict[Number, list[C]]:
    out: dict[Number, list[C]] = defaultdict(list)
    for change in found:
        if (with_ := at(change)) is not None:
            out[with_].append(change)
    return out


def _instants(silver: Silver, kind: GroupEventKind, detail: str = "") -> list[int]:
    return sorted(e["event_at"] for e in silver["group_events"] if e["kind"] == kind and detail in (e["detail"] or ""))
