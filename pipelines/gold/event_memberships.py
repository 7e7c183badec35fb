"""Memberships of a group from silver's events alone, because storms do not read the rows of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.gold.instance_tracker import Instance, Membership, instances, is_same_process
from pipelines.gold.memberships import GONE, departure_by_trigger, is_recorded, stopped_at
from schemas.rows import GenerationRow, GroupEventRow
from schemas.states import Evidence, GroupEventKind
from schemas.thresholds import RESTART_MS, SCALED_MS

Happening = tuple[GroupEventRow, GenerationRow | None]
"""A row of `group_events`, with the row of its generation if there is one."""


@dataclass(frozen=True, slots=True)
class MembershipRef:
    """One membership of an instance, by its position among the instance's memberships."""

    instance: Instance
    index: int

    @property
    def membership(self) -> Membership:
        return self.instance.memberships[self.index]

    @property
    def before(self) -> Membership | None:
        return self.instance.memberships[self.index - 1] if self.index else None

    @property
    def name(self) -> str:
        one = self.membership
        return one.group_instance_id or one.client_id or one.member_id

    @property
    def is_followed(self) -> bool:
        """Whether its next process joined before the coordinator removed this one."""
        following = self.instance.memberships[self.index + 1 : self.index + 2]
        return any(one.arrived_at < (self.membership.gone_at or 0) for one in following)

    @property
    def is_itself(self) -> bool:
        """Whether it is the same process that was removed before, not its successor."""
        return self.before is not None and is_same_process(self.before, self.membership)

    @property
    def is_scaled(self) -> bool:
        """Whether it looks like autoscaling rather than a crash: both its absence and its membership were long."""
        one, before = self.membership, self.before
        if before is None or before.gone_at is None or one.gone_at is None:
            return False
        return min(one.gone_at - one.arrived_at, one.arrived_at - before.gone_at) >= SCALED_MS


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A membership under construction. `arrived_at` is 0 if it began before the events that were read."""

    event: GroupEventRow
    arrived_at: int
    gone_at: int | None = None
    departure_kind: GroupEventKind | None = None


@dataclass(slots=True)
class MembershipRefs:
    """The membership that each event began or ended, by the event's position."""

    begun: Mapping[int, MembershipRef]
    ended: Mapping[int, MembershipRef]


@dataclass(slots=True)
class _EventReader:
    drafts: list[_Draft] = field(default_factory=list)
    here: dict[str, _Draft] = field(default_factory=dict)
    static: dict[str, _Draft] = field(default_factory=dict)
    begun: dict[int, _Draft] = field(default_factory=dict)
    ended: dict[int, _Draft] = field(default_factory=dict)

    def take(self, index: int, event: GroupEventRow, g: GenerationRow | None) -> None:
        kind = event["kind"]
        if kind in GONE:
            self._depart(index, event, _departure_kind(event, g))
        elif kind == GroupEventKind.JOINED:
            self._arrive(index, event)
        elif kind == GroupEventKind.STATIC_RETURNED:
            self._return(index, event)

    def _arrive(self, index: int, event: GroupEventRow) -> None:
        draft = _Draft(event=event, arrived_at=event["event_at"])
        self.drafts.append(draft)
        self.here[event["member_id"]] = self.begun[index] = draft
        if event["group_instance_id"]:
            self.static[event["group_instance_id"]] = draft

    def _depart(self, index: int, event: GroupEventRow, departure_kind: GroupEventKind | None) -> None:
        draft = self.here.pop(event["member_id"], None)
        if draft is None:
            if departure_kind == GroupEventKind.FENCED:
                # A replaced process is only refused, because it is not a member any more.
                return
            draft = _Draft(event=event, arrived_at=0)
            self.drafts.append(draft)
        draft.gone_at, draft.departure_kind = event["event_at"], departure_kind
        self.ended[index] = draft
        if event["group_instance_id"]:
            self.static[event["group_instance_id"]] = draft

    def _return(self, index: int, event: GroupEventRow) -> None:
        """Add the return of a static member under a new member id. Its departure may or may not have an event."""
        before = self.static.get(event["group_instance_id"] or "")
        if before is None or (before.gone_at is not None and event["event_at"] - before.gone_at >= RESTART_MS):
            before = _Draft(event={**event, "member_id": ""}, arrived_at=0)
            self.drafts.append(before)
        if before.gone_at is None:
            self.here.pop(before.event["member_id"], None)
            before.gone_at, before.departure_kind = event["event_at"], GroupEventKind.LEFT
            self.ended[index] = before
        self._arrive(index, event)


def membership_refs(happenings: Sequence[Happening]) -> MembershipRefs:
    """Return the membership that each event began or ended, from the events of one group in order.

    An instance that was absent for an hour counts as a new one, so that the result does not depend on how far back the
    events reach.
    """
    reader = _EventReader()
    for index, (event, g) in enumerate(happenings):
        reader.take(index, event, g)
    made = [_membership(draft) for draft in reader.drafts]
    found = instances(made, within_ms=RESTART_MS)
    by_membership = {id(one): MembershipRef(i, index) for i in found for index, one in enumerate(i.memberships)}
    of_draft = {id(draft): by_membership[id(one)] for draft, one in zip(reader.drafts, made, strict=True)}
    return MembershipRefs(
        begun={index: of_draft[id(draft)] for index, draft in reader.begun.items()},
        ended={index: of_draft[id(draft)] for index, draft in reader.ended.items()},
    )


def _departure_kind(event: GroupEventRow, g: GenerationRow | None) -> GroupEventKind | None:
    if is_recorded(event) or g is None:
        return GroupEventKind(event["kind"])
    return departure_by_trigger(event["member_id"], g)


def _membership(draft: _Draft) -> Membership:
    event, gone_at = draft.event, draft.gone_at
    return Membership(
        member_id=event["member_id"],
        group_instance_id=event["group_instance_id"],
        client_id=event["client_id"] or "",
        client_host=event["client_host"] or "",
        arrived_at=draft.arrived_at,
        stopped_at=None if gone_at is None else stopped_at(gone_at, draft.departure_kind, None),
        gone_at=gone_at,
        departure_kind=draft.departure_kind,
        evidence=Evidence(event["evidence"]),
    )
