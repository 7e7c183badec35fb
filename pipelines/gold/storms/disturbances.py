"""Disturbances of one group: rebalances that a deploy, scaling or follow-up does not explain, and lost members, which
form a storm only if several groups lose members at the same time.

A deploy restarts every instance once, or twice if it is rolled back. So two departures of an instance within an hour
are explained, or as many as the other instances had, up to four deploys. An expired session counts as a normal
departure, because killed processes and all Kafka Streams applications of the classic protocol leave this way. Never
planned are a late poll, a failed rebalance, and the removal of a process that is alive.

A disturbance does not have a cause of its own. The cause of each rebalance comes from its diagnosis.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipelines.gold.event_memberships import MembershipRef, MembershipRefs, membership_refs
from pipelines.gold.memberships import GONE, number
from pipelines.gold.storms.departure_counts import DepartureCounts
from pipelines.gold.storms.new_instances import NewInstances
from schemas.folded_rows import count_of
from schemas.rows import GenerationRow, GroupEventRow
from schemas.states import Evidence, GroupEventKind, GroupProtocol, GroupType, RebalanceMode, Trigger
from schemas.thresholds import (
    CONVERGED,
    DEFAULT_SESSION_MS,
    FLAPS,
    HOUR_MS,
    LOOP,
    MINUTE_MS,
    SHORT_LIFE_MS,
    STORM_CALM_MS,
    failover_ms,
)

WINDOW_MS = STORM_CALM_MS
"""Window in which unexplained rebalances are counted."""

MEMORY_MS = HOUR_MS + WINDOW_MS
"""How far back a group's rows are needed to judge its next rebalance."""

FAILED = (Trigger.REJOIN_TIMEOUT, Trigger.SYNC_TIMEOUT, Trigger.ASSIGNMENT_FAILED)
"""Triggers that are never explained."""

SELDOM = (
    Trigger.LEADER_REJOINED,
    Trigger.METADATA_CHANGED,
    Trigger.SUBSCRIPTION_CHANGED,
    Trigger.STATIC_MEMBER_CHANGED,
    Trigger.ENFORCED,
    Trigger.UNKNOWN,
)
"""Triggers of rebalances with unchanged members: explained unless they are frequent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """One disturbance: a rebalance, a failed rebalance, or a return of a static member. Times are in milliseconds.

    `at` is when it began, `known_at` when records showed it. `started_by` and `client_host` name the instance that
    started it, if there is one. `is_explained`: it forms no storm of the group, but counts for a fleet storm.
    `is_coordinator`: the coordinator had just moved, or could not store the assignment. `generation_id` is None for an
    event within a generation and for an attempt without a generation. `rebalances` is their number: more than one in
    a loop, whose generations are folded into one row.
    """

    group_id: str
    at: int
    known_at: int
    incarnation: int = 0
    generation_id: int | None = None
    is_explained: bool = False
    is_coordinator: bool = False
    started_by: str = ""
    client_host: str = ""
    coordinator_id: int | None = None
    evidence: Evidence = Evidence.OBSERVED
    rebalances: int = 1


@dataclass(slots=True, kw_only=True)
class _Step:
    """A generation with its events, or one event without a generation. `first` is the position of its first event."""

    g: GenerationRow | None
    events: Sequence[GroupEventRow]
    first: int = 0
    is_last: bool = False


@dataclass(slots=True, kw_only=True)
class _Group:
    """State while a group's rows are processed in order of time."""

    group_id: str
    membership_refs: MembershipRefs
    counts: DepartureCounts = field(default_factory=DepartureCounts)
    new_instances: NewInstances = field(default_factory=NewInstances)
    rejoined: deque[int] = field(default_factory=deque)
    follow_ups: int = 0
    loaded_at: int | None = None


def disturbances(
    group_id: str, generations: Iterable[GenerationRow], events: Iterable[GroupEventRow]
) -> list[Disturbance]:
    """Return the disturbances of a group in order of `at`.

    The rows need only the columns of `generations` and `group_events` that this module reads, with timestamps in
    milliseconds. They begin `MEMORY_MS` before the first time of interest and may be in any order.
    """
    steps = _steps(generations, events)
    group = _Group(
        group_id=group_id, membership_refs=membership_refs([(event, step.g) for step in steps for event in step.events])
    )
    found: list[Disturbance] = []
    for step in steps:
        found += _loose(group, step) if step.g is None else _of_generation(group, step, step.g)
    return sorted(found, key=lambda s: (s.at, s.known_at, s.incarnation, s.generation_id or -1, s.started_by))


def _steps(generations: Iterable[GenerationRow], events: Iterable[GroupEventRow]) -> list[_Step]:
    """Return generations and events in order: events within a generation come before the next generation."""
    ordered = sorted(generations, key=number)
    stored: dict[tuple[int, int | None], int] = {number(g): max(g["joined_at"], g["synced_at"] or 0) for g in ordered}
    of_generation: dict[tuple[int, int | None], list[GroupEventRow]] = defaultdict(list)
    loose: deque[GroupEventRow] = deque()
    for event in sorted(events, key=_order):
        # Events of a static member within a generation carry that generation's number.
        is_within = event["kind"] == GroupEventKind.STATIC_RETURNED or event["event_at"] > stored.get(
            _generation(event), 0
        )
        if is_within:
            loose.append(event)
        else:
            of_generation[_generation(event)].append(event)
    steps: list[_Step] = []
    for g in ordered:
        while loose and loose[0]["event_at"] <= g["joined_at"]:
            steps.append(_Step(g=None, events=(loose.popleft(),)))
        steps.append(_Step(g=g, events=of_generation[number(g)]))
    steps += [_Step(g=None, events=(event,), is_last=True) for event in loose]
    first = 0
    for step in steps:
        step.first, first = first, first + len(step.events)
    return steps


def _generation(event: GroupEventRow) -> tuple[int, int | None]:
    return event["incarnation"], event["generation_id"]


def _order(event: GroupEventRow) -> tuple[int, bool, str, str]:
    """Return the sort key. Without log lines, a departure and the next arrival have the same time: departures first."""
    return event["event_at"], event["kind"] not in GONE, event["kind"], event["member_id"]


def _loose(group: _Group, step: _Step) -> Iterator[Disturbance]:
    """Yield the disturbance of an event without a generation.

    A failed attempt that a generation followed counts with that generation.
    """
    (event,) = step.events
    kind, at = event["kind"], event["event_at"]
    if kind == GroupEventKind.COORDINATOR_MOVED:
        group.loaded_at = at
    elif kind == GroupEventKind.FAILED_REBALANCE and (event["generation_id"] is None or step.is_last):
        yield Disturbance(group_id=group.group_id, at=at, known_at=at, incarnation=event["incarnation"])
    if (ended := group.membership_refs.ended.get(step.first)) is not None:
        group.counts.depart(ended)
    if kind == GroupEventKind.STATIC_RETURNED:
        yield from _returned(group, event, group.membership_refs.begun[step.first])


def _of_generation(group: _Group, step: _Step, g: GenerationRow) -> Iterator[Disturbance]:
    """Yield at most one disturbance of a generation, an unexplained one first, however many members it involved."""
    found: list[Disturbance] = []
    positions = range(step.first, step.first + len(step.events))
    arrivals = [
        e for position, e in zip(positions, step.events, strict=True) if position in group.membership_refs.begun
    ]
    departures = sum(position in group.membership_refs.ended for position in positions)
    for position, event in zip(positions, step.events, strict=True):
        if (ended := group.membership_refs.ended.get(position)) is not None:
            found += _departure(group, g, event, ended, arrivals)
        elif (begun := group.membership_refs.begun.get(position)) is not None:
            found += _arrival(group, g, event, begun)
    if arrivals or departures:
        group.follow_ups = 0
    found += _rejoining(group, g, is_same=not arrivals and not departures)
    found += _failed(group, g, step.events, len(arrivals) + departures)
    if _is_failover(group, g, is_smaller=departures > 0):
        found = [replace(s, is_coordinator=True) for s in found]
        found.append(_disturbance(group, g, is_explained=True, is_coordinator=True))
    if g["rebalance_mode"] == RebalanceMode.NONE:
        # No processing stops: members of a share group own no partitions, and a registry's election moves none.
        found = [s for s in found if s.is_explained]
    serious = [s for s in found if not s.is_explained]
    yield from serious[:1] or found[:1]


def _departure(
    group: _Group, g: GenerationRow, event: GroupEventRow, ref: MembershipRef, arrivals: Sequence[GroupEventRow]
) -> Iterator[Disturbance]:
    at, one = event["event_at"], ref.membership
    group.counts.depart(ref)
    if one.departure_kind == GroupEventKind.POLL_TIMEOUT:
        yield _disturbance(group, g, event, ref)
        return
    is_short = at - one.arrived_at <= SHORT_LIFE_MS and not ref.is_scaled
    is_expiry = one.departure_kind == GroupEventKind.SESSION_EXPIRED
    # The next process joined before the session expired, or this one had only just joined: killed, not disconnected.
    is_killed = is_expiry and (
        ref.is_followed or at - one.arrived_at < MINUTE_MS or any(e["event_at"] < at for e in arrivals)
    )
    is_new_instance = ref.before is None and is_short
    group.new_instances.depart(
        at, since=one.arrived_at, is_new_instance=is_new_instance, is_expiry=is_expiry, is_followed=ref.is_followed
    )
    if is_short and not (g["is_empty"] and not is_expiry):
        repeats = group.counts.of(ref, at) > max(LOOP - 1, group.counts.deploys(ref, at, members=g["member_count"]))
        if repeats or group.new_instances.is_one_too_many(at):
            yield _disturbance(group, g, event, ref)
            return
    is_streams = g["group_type"] == GroupType.STREAMS and g["group_protocol"] == GroupProtocol.CLASSIC
    if is_expiry and not is_killed and not is_streams:
        yield _disturbance(group, g, event, ref, is_explained=True)


def _arrival(group: _Group, g: GenerationRow, event: GroupEventRow, ref: MembershipRef) -> Iterator[Disturbance]:
    """Yield a disturbance if a process returns that the coordinator removed although it was alive."""
    before = ref.before
    group.new_instances.arrive(event["event_at"], is_fresh=before is None)
    if before is not None and ref.is_itself and before.departure_kind == GroupEventKind.SESSION_EXPIRED:
        yield _disturbance(group, g, event, ref)


def _returned(group: _Group, event: GroupEventRow, ref: MembershipRef) -> Iterator[Disturbance]:
    """Yield a disturbance if a static member restarts too often. It rebalances nothing, but stops its resources."""
    at = event["event_at"]
    if group.counts.of(ref, at) > max(LOOP - 1, group.counts.deploys(ref, at)):
        yield Disturbance(
            group_id=group.group_id,
            at=at,
            known_at=at,
            incarnation=event["incarnation"],
            started_by=ref.name,
            client_host=ref.membership.client_host,
        )


def _rejoining(group: _Group, g: GenerationRow, *, is_same: bool) -> Iterator[Disturbance]:
    """Yield a disturbance if the same members rejoined too often, or if the rebalance began with a failure."""
    trigger = g["trigger"]
    if trigger in FAILED:
        yield _disturbance(group, g, is_coordinator=trigger == Trigger.ASSIGNMENT_FAILED)
    elif is_same and trigger == Trigger.COOPERATIVE_FOLLOWUP:
        group.follow_ups += 1
        if group.follow_ups > CONVERGED:
            yield _disturbance(group, g)
    elif is_same and trigger in SELDOM and g["group_type"] != GroupType.CONNECT:
        # Connect is left out, because every change of a connector is a rebalance, and such changes come in series.
        at = g["joined_at"]
        while group.rejoined and at - group.rejoined[0] >= WINDOW_MS:
            group.rejoined.popleft()
        group.rejoined.append(at)
        if len(group.rejoined) >= FLAPS:
            yield _disturbance(group, g)


def _failed(group: _Group, g: GenerationRow, events: Sequence[GroupEventRow], moves: int) -> Iterator[Disturbance]:
    """Yield a disturbance for rebalances that never completed, if there are more of them than joins and departures.

    The next rebalance may overtake one rebalance for each member that joins or leaves.
    """
    lines = sum(e["kind"] == GroupEventKind.FAILED_REBALANCE for e in events)
    if max(g["skipped_generations"] or 0, lines) > moves:
        yield _disturbance(group, g)


def _is_failover(group: _Group, g: GenerationRow, *, is_smaller: bool) -> bool:
    """Return whether another broker loaded the group shortly before. Session timeouts are unknown here."""
    if group.loaded_at is None or g["trigger"] == Trigger.FIRST_MEMBER:
        return False
    began: int = g["prepared_at"] if g["prepared_at"] is not None else g["joined_at"]
    return 0 <= began - group.loaded_at <= failover_ms(DEFAULT_SESSION_MS if is_smaller else 0)


def _disturbance(
    group: _Group,
    g: GenerationRow,
    event: GroupEventRow | None = None,
    ref: MembershipRef | None = None,
    *,
    is_explained: bool = False,
    is_coordinator: bool = False,
) -> Disturbance:
    at = g["joined_at"] if event is None else event["event_at"]
    stored = g["synced_at"] if g["synced_at"] is not None else g["joined_at"]
    return Disturbance(
        group_id=group.group_id,
        at=at,
        known_at=max(at, stored),
        incarnation=g["incarnation"],
        generation_id=g["generation_id"],
        is_explained=is_explained,
        is_coordinator=is_coordinator,
        started_by=ref.name if ref else "",
        client_host=ref.membership.client_host if ref else "",
        coordinator_id=g["coordinator_id"],
        evidence=Evidence(event["evidence"] if event else g["trigger_evidence"]),
        rebalances=count_of([g]),
    )
