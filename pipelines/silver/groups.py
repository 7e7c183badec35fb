"""The row of `groups`: the last state that records and lines tell of, and since when."""

from __future__ import annotations

from typing import Any

from pipelines.silver.generation_rows import group_type
from pipelines.silver.generations import Base, Generation, Lives
from pipelines.silver.history import Event, History
from schemas.coordinator_log import EventKind
from schemas.states import Evidence, GroupProtocol, GroupState, GroupType

OTHER_PROTOCOLS = {
    "ConsumerGroup": (GroupType.CONSUMER, GroupProtocol.CONSUMER),
    "StreamsGroup": (GroupType.STREAMS, GroupProtocol.STREAMS),
    "ShareGroup": (GroupType.SHARE, GroupProtocol.SHARE),
}


def group_row(history: History, lives: Lives, base: Base | None) -> list[dict[str, Any]]:
    """At most one row: a group known from log lines alone has none."""
    if not history.records and history.commits.span() is None:
        return []
    last = lives.generations[-1] if lives.generations else None
    state, since, evidence, opened = _state(history, last)
    kind, protocol = _kind(history, last)
    return row_of(
        history,
        base,
        incarnation=lives.incarnation,
        group_type=kind,
        group_protocol=protocol,
        assignor=last.assignor if last else None,
        state=state,
        state_since_at=since,
        generation_id=last.number if last else None,
        member_count=len(last.final_members) if last else None,
        open_rebalance_since_at=opened,
        evidence=evidence,
    )


def row_of(history: History, base: Base | None, *, state: GroupState, **known: Any) -> list[dict[str, Any]]:
    """`known` are the columns that the group's protocol tells."""
    times = [r.at for r in history.records if r.at is not None] + list(history.commits.span() or ())
    seen = [*times, *(e.at for e in history.events)]
    row = {
        "first_seen_at": base.first_seen_at if base else min(seen, default=None),
        "last_record_at": max(times, default=None),
        "is_deleted": state == GroupState.DEAD,
    }
    return [known | {"state": state} | row]


def _kind(history: History, last: Generation | None) -> tuple[GroupType, GroupProtocol | None]:
    for record in reversed(history.records):
        for prefix, answer in OTHER_PROTOCOLS.items():
            if record.kind.startswith(prefix) and record.value is not None:
                return answer
        if record.kind == "GroupMetadata" and record.value is not None:
            break
    if last is None:
        return GroupType.CONSUMER, GroupProtocol.CLASSIC if history.records else None
    return group_type(last), GroupProtocol.CLASSIC


def _state(history: History, last: Generation | None) -> tuple[GroupState, int | None, Evidence, int | None]:
    """State, since when, how that is known, and the start of a rebalance that has not completed."""
    newest = next((r for r in reversed(history.records) if r.kind == "GroupMetadata"), None)
    if any(r.kind != "GroupMetadata" for r in history.records[-1:]):
        return GroupState.UNKNOWN, None, Evidence.INFERRED, None
    if newest is None:
        return GroupState.EMPTY, None, Evidence.INFERRED, None
    if newest.value is None:
        return GroupState.DEAD, newest.at, Evidence.OBSERVED, None
    number = newest.value["generation"]
    done = last.synced_at if last is not None and last.number == number else newest.at
    opened = _opened(history.events, number, done)
    if opened is not None:
        joined = any(
            e.kind == EventKind.STABILIZED and e.at >= opened.at and (e["generation_id"] or 0) > number
            for e in history.events
        )
        state = GroupState.COMPLETING_REBALANCE if joined else GroupState.PREPARING_REBALANCE
        return state, opened.at, Evidence.OBSERVED, opened.at
    if last is None or last.is_empty or last.number != number:
        return GroupState.EMPTY, newest.at if last is None else last.joined_at, Evidence.OBSERVED, None
    return GroupState.STABLE, last.synced_at, Evidence.OBSERVED if history.events else Evidence.BOUNDED, None


def _opened(events: list[Event], number: int, done: int | None) -> Event | None:
    """The first start of a rebalance after the newest record; a rebalance that the log ends is not open."""
    later = [e for e in events if done is None or e.at >= done]
    starts = [e for e in later if e.kind == EventKind.PREPARING and (e["generation_id"] or 0) >= number]
    if not starts:
        return None
    over = any(
        e.kind in (EventKind.EMPTY, EventKind.ASSIGNMENT_RECEIVED, EventKind.DEAD) and e.at >= starts[-1].at
        for e in later
    )
    return None if over else starts[0]
