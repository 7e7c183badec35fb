"""Memberships of a group from silver's generations and members: the first generation with a member, the first without.

A membership ends each time the member is removed. A fenced member is gone, although a KIP-848 client returns with the
same member id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.gold.instance_tracker import Instance, Membership, Number, instances
from schemas.rows import GenerationMemberRow, GenerationRow, GroupEventRow, GroupHistory
from schemas.states import Evidence, GroupEventKind, Trigger
from schemas.thresholds import DEFAULT_SESSION_MS

Silver = GroupHistory
"""The silver rows from which the gold rows of one group are made."""

GONE = (
    GroupEventKind.LEFT,
    GroupEventKind.SESSION_EXPIRED,
    GroupEventKind.POLL_TIMEOUT,
    GroupEventKind.FENCED,
)
"""Events that end a membership."""

CAME = (GroupEventKind.JOINED, GroupEventKind.STATIC_RETURNED)
"""Events that begin a membership."""

DEPARTURE_BY_TRIGGER: Mapping[str, GroupEventKind] = {
    Trigger.MEMBER_LEFT: GroupEventKind.LEFT,
    Trigger.SESSION_EXPIRED: GroupEventKind.SESSION_EXPIRED,
    Trigger.POLL_TIMEOUT: GroupEventKind.POLL_TIMEOUT,
}
"""How a member left according to the rebalance's inferred trigger, if only its absence is recorded."""


def number(row: GenerationRow | GenerationMemberRow) -> Number:
    """Return the row's incarnation and generation id, which order generations over all incarnations of the group id."""
    return row["incarnation"], row["generation_id"]


def is_recorded(event: GroupEventRow) -> bool:
    """Return whether an event shows how the member left; otherwise it shows only that the member was gone by then."""
    return not (event["kind"] == GroupEventKind.LEFT and event["evidence"] == Evidence.INFERRED)


def departure_by_trigger(member_id: str, g: GenerationRow) -> GroupEventKind | None:
    """Return how a member left according to the rebalance's trigger; None if that does not show it.

    This is for departures of which only the absence is recorded.
    """
    named = g["trigger_member_id"]
    return DEPARTURE_BY_TRIGGER.get(g["trigger"]) if named in (None, member_id) else None


def stopped_at(gone_at: int, departure_kind: GroupEventKind | None, session_timeout_ms: int | None) -> int:
    """Return the earliest time (milliseconds) at which a member may have died and its next process may have joined.

    That is one session timeout before the coordinator removed it, or the time at which it left.
    """
    is_silent = departure_kind in (None, GroupEventKind.SESSION_EXPIRED)
    return gone_at - (session_timeout_ms or DEFAULT_SESSION_MS) * is_silent


@dataclass(slots=True)
class _Open:
    row: GenerationMemberRow
    joined_in: Number | None
    arrived_at: int
    settled_at: int


@dataclass(slots=True)
class _GenerationReader:
    """State while a group's generations are processed in order."""

    members: Mapping[Number, Sequence[GenerationMemberRow]]
    events: Mapping[tuple[str, int, int | None], Sequence[GroupEventRow]]
    stops: Mapping[tuple[str, Number], int]
    present: dict[str, _Open] = field(default_factory=dict)
    static: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    ended: list[Membership] = field(default_factory=list)

    def step(self, g: GenerationRow, *, is_first: bool) -> None:
        rows = self.members.get(number(g), ())
        here = {row["member_id"] for row in rows}
        for member_id in sorted(self.present.keys() - here):
            self._close(member_id, *self._departure(member_id, g))
        began = set(g["joined_member_ids"] or ())
        for row in rows:
            if row["member_id"] in self.present:
                continue
            replaced = next(iter(self.static.get(row["group_instance_id"] or "", ())), None)
            if replaced is not None:
                self._close(replaced, row["valid_from_at"], None, GroupEventKind.LEFT, Evidence.OBSERVED, None)
            is_new = replaced is None and not (is_first and row["member_id"] not in began)
            if row["group_instance_id"] is not None:
                self.static[row["group_instance_id"]][row["member_id"]] = None
            self.present[row["member_id"]] = _Open(
                row=row,
                joined_in=number(g) if is_new else None,
                arrived_at=self._arrived(row, g) if is_new else row["valid_from_at"],
                settled_at=row["valid_from_at"],
            )

    def memberships(self) -> list[Membership]:
        return [*self.ended, *(_membership(o, None) for o in self.present.values())]

    def _close(
        self,
        member_id: str,
        at: int,
        left_in: Number | None,
        departure_kind: GroupEventKind | None,
        evidence: Evidence,
        reason: str | None,
    ) -> None:
        opened = self.present.pop(member_id)
        stop = self.stops.get((member_id, left_in)) if left_in and departure_kind == GroupEventKind.LEFT else None
        self.static.get(opened.row["group_instance_id"] or "", {}).pop(member_id, None)
        self.ended.append(
            _membership(
                opened,
                at,
                stop,
                left_in=left_in,
                departure_kind=departure_kind,
                evidence=evidence,
                reason=reason,
            )
        )

    def _departure(
        self, member_id: str, g: GenerationRow
    ) -> tuple[int, Number, GroupEventKind | None, Evidence, str | None]:
        found = next((e for e in self._events(member_id, g) if e["kind"] in GONE), None)
        if found is not None and is_recorded(found):
            kind, evidence = GroupEventKind(found["kind"]), Evidence(found["evidence"])
            return found["event_at"], number(g), kind, evidence, found["detail"]
        return g["joined_at"], number(g), departure_by_trigger(member_id, g), Evidence.INFERRED, None

    def _arrived(self, row: GenerationMemberRow, g: GenerationRow) -> int:
        came = next((e for e in self._events(row["member_id"], g) if e["kind"] in CAME), None)
        if came is not None and came["evidence"] == Evidence.OBSERVED:
            return int(came["event_at"])
        return int(g["joined_at"])

    def _events(self, member_id: str, g: GenerationRow) -> Sequence[GroupEventRow]:
        return self.events.get((member_id, *number(g)), ())


def tracked(silver: Silver, stops: Mapping[tuple[str, Number], int] | None = None) -> list[Instance]:
    """Return every instance of a group, from generations, generation_members and group_events in any order.

    `stops` has the milliseconds at which members that left had stopped working, by member id and the generation without
    them, as far as known. The next process of an instance may ask to join while the previous one still closes.
    """
    generations = sorted(silver["generations"], key=number)
    members: dict[Number, list[GenerationMemberRow]] = defaultdict(list)
    for row in sorted(silver["generation_members"], key=lambda r: (r["valid_from_at"], r["member_id"])):
        members[number(row)].append(row)
    events: dict[tuple[str, int, int | None], list[GroupEventRow]] = defaultdict(list)
    for event in sorted(silver["group_events"], key=lambda e: (e["event_at"], e["kind"])):
        events[event["member_id"], event["incarnation"], event["generation_id"]].append(event)
    reader = _GenerationReader(members, events, stops or {})
    for at, g in enumerate(generations):
        reader.step(g, is_first=at == 0)
    return instances(reader.memberships())


def _membership(
    opened: _Open,
    gone_at: int | None,
    stop: int | None = None,
    *,
    left_in: Number | None = None,
    departure_kind: GroupEventKind | None = None,
    evidence: Evidence = Evidence.INFERRED,
    reason: str | None = None,
) -> Membership:
    row = opened.row
    known = None if gone_at is None else stopped_at(gone_at, departure_kind, row["session_timeout_ms"])
    return Membership(
        member_id=row["member_id"],
        group_instance_id=row["group_instance_id"],
        client_id=row["client_id"] or "",
        client_host=row["client_host"] or "",
        topics=tuple(row["subscribed_topics"] or ()),
        session_timeout_ms=row["session_timeout_ms"] or 0,
        rebalance_timeout_ms=row["rebalance_timeout_ms"] or 0,
        arrived_at=opened.arrived_at,
        settled_at=opened.settled_at,
        stopped_at=known if stop is None or known is None else min(stop, known),
        gone_at=gone_at,
        departure_kind=departure_kind,
        joined_in=opened.joined_in,
        left_in=left_in,
        evidence=evidence,
        reason=reason,
    )
