"""Shakes of one group: rebalances that no deploy, scaling or follow-up explains, and losses that only explain
themselves where the group is alone in them.

A deploy restarts every instance once, or twice where it is rolled back; so two departures of an instance within an hour
are explained, and as many as the others had, up to four deploys. Expired sessions are departures like others: that is
how a killed process goes, and every Kafka Streams application of the classic protocol. What nobody plans: a poll that
took too long, a rebalance that failed, a living process that the coordinator gave up.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.gold.storms.newcomers import RESTARTS, Newcomers
from pipelines.gold.storms.places import HOUR_MS, Place, Places
from schemas.states import (
    DiagnosisCause,
    Evidence,
    GroupEventKind,
    GroupProtocol,
    GroupType,
    RebalanceMode,
    Trigger,
)

MINUTE_MS = 60_000
WINDOW_MS = 30 * MINUTE_MS
"""Three polls of one member that exceed the default of five minutes, with what lies between them, fit in."""

MEMORY_MS = HOUR_MS + WINDOW_MS
"""So far back a group's rows are needed to judge its next rebalance."""

REJOINS = 2
"""Times that a group may join anew within a window for a leader, changed topics or no stated reason."""

FOLLOW_UPS = 3
"""A cooperative group needs one, or two where a member was slow; Connect backs off a few times (KAFKA-12495)."""

SHORT_MS = WINDOW_MS // 2
FAILOVER_MS = 2 * MINUTE_MS
Row = Mapping[str, Any]
Number = tuple[int, int]
ALWAYS = {
    Trigger.POLL_TIMEOUT: DiagnosisCause.POLL_TIMEOUT,
    Trigger.REJOIN_TIMEOUT: DiagnosisCause.SLOW_JOINER,
    Trigger.SYNC_TIMEOUT: DiagnosisCause.SLOW_JOINER,
    Trigger.ASSIGNMENT_FAILED: DiagnosisCause.COORDINATOR,
}
SELDOM = {
    Trigger.LEADER_REJOINED: DiagnosisCause.LEADER_FLAPPING,
    Trigger.METADATA_CHANGED: DiagnosisCause.TOPIC_CHANGES,
    Trigger.SUBSCRIPTION_CHANGED: DiagnosisCause.TOPIC_CHANGES,
    Trigger.STATIC_MEMBER_CHANGED: DiagnosisCause.CRASH_LOOP,
    Trigger.ENFORCED: DiagnosisCause.UNKNOWN,
    Trigger.UNKNOWN: DiagnosisCause.UNKNOWN,
}
GONE = (GroupEventKind.LEFT, GroupEventKind.SESSION_EXPIRED, GroupEventKind.POLL_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shake:
    """One rebalance, or one that failed. `at`: when it was set off; `known_at`: when the records told. `who` and
    `client_host` name the instance, where one set it off. `is_explained`: no storm by itself, but a sign of one where
    several groups have it at once.
    """

    group_id: str
    at: int
    known_at: int
    cause: DiagnosisCause
    is_explained: bool = False
    who: str = ""
    client_host: str = ""
    coordinator_id: int | None = None
    evidence: Evidence = Evidence.OBSERVED


@dataclass(slots=True, kw_only=True)
class _Group:
    """What is known while a group's rows pass by in order of time."""

    group_id: str
    places: Places = field(default_factory=Places)
    newcomers: Newcomers = field(default_factory=Newcomers)
    rejoined: deque[int] = field(default_factory=deque)
    follow_ups: int = 0
    loaded_at: int | None = None


def shakes(group_id: str, generations: Iterable[Row], events: Iterable[Row]) -> list[Shake]:
    """In order of `at`. Rows: those columns of `generations` and `group_events` that this module reads, instants in
    milliseconds; from `MEMORY_MS` before the first instant that is asked for, in any order.
    """
    ordered = sorted(generations, key=lambda g: (g["incarnation"], g["generation_id"]))
    stored = {(g["incarnation"], g["generation_id"]): max(g["joined_at"], g["synced_at"] or 0) for g in ordered}
    told: dict[Number, list[Row]] = defaultdict(list)
    loose: deque[Row] = deque()
    for event in sorted(events, key=_order):
        number = (event["incarnation"], event["generation_id"])
        # What a static member does within a generation is told under that generation's number.
        is_within = event["kind"] == GroupEventKind.STATIC_RETURNED or event["event_at"] > stored.get(number, 0)
        if is_within:
            loose.append(event)
        else:
            told[number].append(event)
    group = _Group(group_id=group_id)
    found: list[Shake] = []
    for g in ordered:
        while loose and loose[0]["event_at"] <= g["joined_at"]:
            found += _loose(group, loose.popleft(), is_last=False)
        found += _of_generation(group, g, told[g["incarnation"], g["generation_id"]])
    for event in loose:
        found += _loose(group, event, is_last=True)
    return sorted(found, key=lambda s: (s.at, s.known_at, s.cause, s.who))


def _order(event: Row) -> tuple[int, bool, str, str]:
    """Where only records tell, a departure and the arrival that follows it have one time."""
    return event["event_at"], event["kind"] not in GONE, event["kind"], event["member_id"]


def _loose(group: _Group, event: Row, *, is_last: bool) -> Iterator[Shake]:
    """An event of no generation that was read. An attempt that another generation followed is counted with that."""
    kind, at = event["kind"], event["event_at"]
    if kind == GroupEventKind.COORDINATOR_MOVED:
        group.loaded_at = at
    elif kind == GroupEventKind.FAILED_REBALANCE and (event["generation_id"] is None or is_last):
        yield Shake(group_id=group.group_id, at=at, known_at=at, cause=DiagnosisCause.SLOW_JOINER)
    elif kind in GONE:
        group.places.goes(event)
    elif kind == GroupEventKind.JOINED:
        group.places.comes(event)
    elif kind == GroupEventKind.STATIC_RETURNED:
        yield from _returned(group, event)


def _of_generation(group: _Group, g: Row, events: Sequence[Row]) -> Iterator[Shake]:
    """At most one shake that is not explained, however many members it took; else what may be a loss."""
    found: list[Shake] = []
    comes = [e for e in events if e["kind"] == GroupEventKind.JOINED]
    goes = [e for e in events if e["kind"] in GONE]
    for event in events:
        if event["kind"] in GONE:
            found += _departure(group, g, event, comes)
        elif event["kind"] == GroupEventKind.JOINED:
            found += _arrival(group, g, event)
    if comes or goes:
        group.follow_ups = 0
    found += _rejoining(group, g, is_same=not comes and not goes)
    found += _failed(group, g, events, len(comes) + len(goes))
    if _is_failover(group, g):
        found = [replace(s, cause=DiagnosisCause.COORDINATOR) for s in found]
        found.append(_shake(group, g, None, None, DiagnosisCause.COORDINATOR, is_explained=True))
    if g["rebalance_mode"] == RebalanceMode.NONE:
        # Nobody's work stops: members of a share group have nothing of their own, a registry's election moves none.
        found = [s for s in found if s.is_explained]
    serious = [s for s in found if not s.is_explained]
    yield from serious[:1] or found[:1]


def _departure(group: _Group, g: Row, event: Row, comes: Sequence[Row]) -> Iterator[Shake]:
    at, kind = event["event_at"], _kind(event, g)
    place = group.places.goes({**event, "kind": kind})
    if kind == GroupEventKind.POLL_TIMEOUT:
        yield _shake(group, g, event, place, ALWAYS.get(g["trigger"], DiagnosisCause.POLL_TIMEOUT))
        return
    is_short = place.arrived_at is not None and at - place.arrived_at < SHORT_MS
    is_short = is_short and not place.is_scaled(at)
    is_newcomer = place.is_fresh and is_short
    is_expiry = kind == GroupEventKind.SESSION_EXPIRED
    is_killed = is_expiry and _is_replaced(place, at, comes)
    group.newcomers.goes(at, since=place.arrived_at, is_newcomer=is_newcomer, is_expiry=is_expiry)
    if is_short and not (g["is_empty"] and not is_expiry):
        repeats = place.departures(at) > max(RESTARTS, group.places.deploys(place, at, members=g["member_count"]))
        if repeats or group.newcomers.is_one_too_many(at):
            cause = DiagnosisCause.SESSION_EXPIRY if is_expiry and not is_killed else DiagnosisCause.CRASH_LOOP
            yield _shake(group, g, event, place, cause)
            return
    is_streams = g["group_type"] == GroupType.STREAMS and g["group_protocol"] == GroupProtocol.CLASSIC
    if is_expiry and not is_killed and not is_streams:
        yield _shake(group, g, event, place, DiagnosisCause.SESSION_EXPIRY, is_explained=True)


def _kind(event: Row, g: Row) -> GroupEventKind:
    """Records alone tell of a departure; from the commits before it silver may know that it was an expiry."""
    if event["evidence"] == Evidence.INFERRED and g["trigger"] in (Trigger.SESSION_EXPIRED, Trigger.POLL_TIMEOUT):
        return GroupEventKind(g["trigger"])
    return GroupEventKind(event["kind"])


def _is_replaced(place: Place, at: int, comes: Sequence[Row]) -> bool:
    """Its next process was there before the coordinator missed it: killed, not cut off."""
    return (place.arrived_at is not None and at - place.arrived_at < MINUTE_MS) or any(
        e["event_at"] < at for e in comes
    )


def _arrival(group: _Group, g: Row, event: Row) -> Iterator[Shake]:
    """A process that the coordinator had given up, but that lives, is back: that is nobody's plan."""
    at = event["event_at"]
    place = group.places.comes(event)
    group.newcomers.comes(at, is_fresh=place.is_fresh)
    if place.is_itself and place.how == GroupEventKind.SESSION_EXPIRED:
        yield _shake(group, g, event, place, DiagnosisCause.SESSION_EXPIRY)


def _returned(group: _Group, event: Row) -> Iterator[Shake]:
    """Static members restart without a rebalance, and stop what they own each time."""
    place = group.places.stays(event)
    at = event["event_at"]
    if place.departures(at) > max(RESTARTS, group.places.deploys(place, at)):
        yield Shake(
            group_id=group.group_id,
            at=at,
            known_at=at,
            cause=DiagnosisCause.CRASH_LOOP,
            who=place.name,
            client_host=place.client_host,
        )


def _rejoining(group: _Group, g: Row, *, is_same: bool) -> Iterator[Shake]:
    """The same members came together again, or the coordinator or a client gave up."""
    trigger = g["trigger"]
    if trigger in ALWAYS and trigger != Trigger.POLL_TIMEOUT:
        yield _shake(group, g, None, None, ALWAYS[trigger])
    elif is_same and trigger == Trigger.COOPERATIVE_FOLLOWUP:
        group.follow_ups += 1
        if group.follow_ups > FOLLOW_UPS:
            yield _shake(group, g, None, None, DiagnosisCause.FOLLOW_UPS)
    elif is_same and trigger in SELDOM and g["group_type"] != GroupType.CONNECT:
        # Somebody who changes connectors changes many: each change is a rebalance.
        at = g["joined_at"]
        while group.rejoined and at - group.rejoined[0] >= WINDOW_MS:
            group.rejoined.popleft()
        group.rejoined.append(at)
        if len(group.rejoined) > REJOINS:
            yield _shake(group, g, None, None, SELDOM[trigger])


def _failed(group: _Group, g: Row, events: Sequence[Row], moves: int) -> Iterator[Shake]:
    """Rebalances that never completed: one for each that came or went may have been overtaken by the next."""
    lines = sum(e["kind"] == GroupEventKind.FAILED_REBALANCE for e in events)
    if max(g["skipped_generations"] or 0, lines) > moves:
        yield _shake(group, g, None, None, DiagnosisCause.SLOW_JOINER)


def _is_failover(group: _Group, g: Row) -> bool:
    """A rebalance right after another broker took the group over."""
    since = None if group.loaded_at is None else g["joined_at"] - group.loaded_at
    return since is not None and 0 <= since <= FAILOVER_MS and g["trigger"] != Trigger.FIRST_MEMBER


def _shake(
    group: _Group, g: Row, event: Row | None, place: Place | None, cause: DiagnosisCause, *, is_explained: bool = False
) -> Shake:
    at = g["joined_at"] if event is None else event["event_at"]
    stored = g["synced_at"] if g["synced_at"] is not None else g["joined_at"]
    return Shake(
        group_id=group.group_id,
        at=at,
        known_at=max(at, stored),
        cause=cause,
        is_explained=is_explained,
        who=place.name if place else "",
        client_host=place.client_host if place else "",
        coordinator_id=g["coordinator_id"],
        evidence=Evidence(event["evidence"] if event else g["trigger_evidence"]),
    )
