"""Markers on the timeline of a group whose coordinator assigns."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.silver.coordinator_assigned.epochs import ChangeKind, EpochHistory, Happening
from pipelines.silver.coordinator_assigned.exits import Exit
from pipelines.silver.coordinator_assigned.hand_overs import Exits
from pipelines.silver.group_events import event_row
from schemas.rows import GroupEventOfGroup
from schemas.states import WITH_CLASSIC, Evidence, GroupEventKind, Trigger

KINDS = {
    ChangeKind.JOINED: GroupEventKind.JOINED,
    ChangeKind.PAUSED: GroupEventKind.LEFT,
    ChangeKind.RETURNED: GroupEventKind.STATIC_RETURNED,
    ChangeKind.CHANGED: GroupEventKind.SETTINGS_CHANGED,
    ChangeKind.CREATED: GroupEventKind.CREATED,
    ChangeKind.EMPTY: GroupEventKind.EMPTY,
    ChangeKind.DEAD: GroupEventKind.DEAD,
    ChangeKind.UPGRADED: GroupEventKind.UPGRADED,
}
EXITS = {
    Trigger.MEMBER_LEFT: GroupEventKind.LEFT,
    Trigger.SESSION_EXPIRED: GroupEventKind.SESSION_EXPIRED,
    # The rebalance timeout of a consumer is its max.poll.interval.ms (KIP-62).
    Trigger.POLL_TIMEOUT: GroupEventKind.POLL_TIMEOUT,
    Trigger.REJOIN_TIMEOUT: GroupEventKind.POLL_TIMEOUT,
    Trigger.SYNC_TIMEOUT: GroupEventKind.POLL_TIMEOUT,
}


def epoch_events(history: EpochHistory, exits: Exits) -> Iterator[GroupEventOfGroup]:
    for happening in history.happenings:
        member, position = happening.member, happening.record.position
        if happening.record.at is None:
            continue
        if happening.kind == ChangeKind.GONE and member is not None:
            yield _gone(happening, exits.get((position, member.member_id)))
        elif happening.is_by_then:
            yield _row(happening, GroupEventKind.JOINED, Evidence.BOUNDED, "had joined by this time")
        elif happening.kind in KINDS:
            yield _row(happening, KINDS[happening.kind], Evidence.OBSERVED, _detail(happening))


def _gone(happening: Happening, found: Exit | None) -> GroupEventOfGroup:
    if found is None or (found.line is None and found.trigger == Trigger.UNKNOWN):
        detail = "gone by this time; it is not recorded whether it left or was removed"
        return _row(happening, GroupEventKind.LEFT, Evidence.INFERRED, detail)
    kind = EXITS.get(found.trigger, GroupEventKind.FENCED)
    detail = (found.line["client_reason"] or found.line["reason"]) if found.line else "inferred from its commits"
    if found.line is not None and found.evidence == Evidence.INFERRED:
        detail = "left after being silent for its whole max.poll.interval.ms; the client gave no reason"
    return _row(happening, kind, found.evidence, detail)


def _detail(happening: Happening) -> str | None:
    member, before = happening.member, happening.before
    match happening.kind:
        case ChangeKind.JOINED if member is not None and member.is_classic:
            return WITH_CLASSIC
        case ChangeKind.PAUSED:
            return "static member, left temporarily: it keeps its assignment"
        case ChangeKind.RETURNED if before is not None:
            return f"replaced {before.member_id}"
        case ChangeKind.CHANGED if member is not None and before is not None:
            if member.assignor != before.assignor:
                return f"assignor {before.assignor} -> {member.assignor}"
            return f"subscription of {len(before.topics)} -> {len(member.topics)} topics"
    return None


def _row(happening: Happening, kind: GroupEventKind, evidence: Evidence, detail: str | None) -> GroupEventOfGroup:
    return event_row(
        happening.record.at or 0,
        kind,
        happening.incarnation,
        evidence=evidence,
        member=happening.member,
        generation=happening.number,
        detail=detail,
    )
