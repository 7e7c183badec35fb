"""The row of `groups`: the group's last state according to records and log lines, and its start."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.silver.generation_rows import group_type
from pipelines.silver.generations import Generation, GroupIncarnations, ResumeState
from pipelines.silver.history import Event, History
from schemas.coordinator_log import EventKind
from schemas.rows import GroupOfGroup
from schemas.states import Evidence, GroupProtocol, GroupState, GroupType

OTHER_PROTOCOLS = {
    "ConsumerGroup": (GroupType.CONSUMER, GroupProtocol.CONSUMER),
    "StreamsGroup": (GroupType.STREAMS, GroupProtocol.STREAMS),
    "ShareGroup": (GroupType.SHARE, GroupProtocol.SHARE),
}


class LastState(NamedTuple):
    """The group's state. `opened_at` is the start of a rebalance that has not completed; times in milliseconds."""

    state: GroupState
    since_at: int | None
    evidence: Evidence
    opened_at: int | None


def group_row(history: History, incarnations: GroupIncarnations, base: ResumeState | None) -> list[GroupOfGroup]:
    """Return the row of `groups`, or nothing for a group that is known only from log lines."""
    if not history.records and history.commits.span() is None:
        return []
    last = incarnations.generations[-1] if incarnations.generations else None
    kind, protocol = _kind(history, last)
    return [
        row_of(
            history,
            base,
            _state(history, last),
            incarnation=incarnations.incarnation,
            group_type=kind,
            group_protocol=protocol,
            assignor=last.assignor if last else None,
            generation_id=last.number if last else None,
            member_count=len(last.final_members) if last else None,
        )
    ]


def row_of(
    history: History,
    base: ResumeState | None,
    last: LastState,
    *,
    incarnation: int,
    group_type: GroupType,
    group_protocol: GroupProtocol | None,
    assignor: str | None,
    generation_id: int | None,
    member_count: int | None,
) -> GroupOfGroup:
    """Return the row of `groups`: the group's state with the first and last times of its history."""
    times = [r.at for r in history.records if r.at is not None] + list(history.commits.span() or ())
    seen = [*times, *(e.at for e in history.events)]
    return {
        "incarnation": incarnation,
        "group_type": group_type,
        "group_protocol": group_protocol,
        "assignor": assignor,
        "state": last.state,
        "state_since_at": last.since_at,
        "generation_id": generation_id,
        "member_count": member_count,
        "open_rebalance_since_at": last.opened_at,
        "first_seen_at": base.first_seen_at if base else min(seen, default=None),
        "last_record_at": max(times, default=None),
        "is_deleted": last.state == GroupState.DEAD,
        "evidence": last.evidence,
    }


def _kind(history: History, last: Generation | None) -> tuple[GroupType, GroupProtocol | None]:
    for record in reversed(history.records):
        for prefix, response in OTHER_PROTOCOLS.items():
            if record.kind.startswith(prefix) and record.value is not None:
                return response
        if record.kind == "GroupMetadata" and record.value is not None:
            break
    if last is None:
        return GroupType.CONSUMER, GroupProtocol.CLASSIC if history.records else None
    return group_type(last), GroupProtocol.CLASSIC


def _state(history: History, last: Generation | None) -> LastState:
    newest = next((r for r in reversed(history.records) if r.kind == "GroupMetadata"), None)
    if any(r.kind != "GroupMetadata" for r in history.records[-1:]):
        return LastState(GroupState.UNKNOWN, None, Evidence.INFERRED, None)
    if newest is None:
        return LastState(GroupState.EMPTY, None, Evidence.INFERRED, None)
    if newest.value is None:
        return LastState(GroupState.DEAD, newest.at, Evidence.OBSERVED, None)
    number = newest.value["generation"]
    done = last.synced_at if last is not None and last.number == number else newest.at
    opened = _opened(history.events, number, done)
    if opened is not None:
        # A member that joins before the leader has synced begins the join phase anew.
        phases = (EventKind.PREPARING, EventKind.STABILIZED)
        phase = next((e.kind for e in reversed(history.events) if e.kind in phases), None)
        is_joined = phase == EventKind.STABILIZED
        state = GroupState.COMPLETING_REBALANCE if is_joined else GroupState.PREPARING_REBALANCE
        return LastState(state, opened.at, Evidence.OBSERVED, opened.at)
    if last is None or last.is_empty or last.number != number:
        since = newest.at if last is None else last.joined_at
        return LastState(GroupState.EMPTY, since, Evidence.OBSERVED, None)
    evidence = Evidence.OBSERVED if history.events else Evidence.BOUNDED
    return LastState(GroupState.STABLE, last.synced_at, evidence, None)


def _opened(events: list[Event], number: int, done: int | None) -> Event | None:
    """Return the line of the first rebalance start after the newest record, or None if the log shows its end."""
    later = [e for e in events if done is None or e.at >= done]
    starts = [e for e in later if e.kind == EventKind.PREPARING and (e["generation_id"] or 0) >= number]
    if not starts:
        return None
    over = any(
        e.kind in (EventKind.EMPTY, EventKind.ASSIGNMENT_RECEIVED, EventKind.DEAD) and e.at >= starts[-1].at
        for e in later
    )
    return None if over else starts[0]
