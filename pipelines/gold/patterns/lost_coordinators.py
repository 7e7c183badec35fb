"""Members that never found the new coordinator of their group after it had moved.

A coordinator that loads a group gives every member a new session. A member that never asks for the coordinator again is
expelled when that session ends: exactly one session timeout after the load. If other members of the group did come
back and the expelled one did not return within minutes, it hangs, or it ended together with the old broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipelines.gold.patterns.cluster_findings import ClusterFacts, ClusterFinding, named
from pipelines.gold.wording import shortened
from schemas.rows import GroupEventRow
from schemas.states import Evidence, GroupEventKind, Pattern
from schemas.thresholds import MINUTE_MS
from schemas.written import count, duration, instant

NEAR_MS = 5_000
"""Greatest difference between the expulsion and one session after the load."""

RETURNED_MS = 2 * MINUTE_MS
"""A member that joins again within this time found the coordinator."""

Name = tuple[str, str]


def coordinators_not_found(facts: ClusterFacts) -> list[ClusterFinding]:
    """Return the moves of a coordinator after which some members of a group came back and others never did."""
    by_group: dict[str, list[GroupEventRow]] = defaultdict(list)
    for event in facts.moves:
        by_group[event["group_id"]].append(event)
    found = []
    for group, events in sorted(by_group.items()):
        ordered = sorted(events, key=lambda e: (e["event_at"], e["kind"], e["member_id"]))
        loads = [e["event_at"] for e in ordered if e["kind"] == GroupEventKind.COORDINATOR_MOVED]
        for at, until in zip(loads, [*loads[1:], facts.until_ms + 1], strict=True):
            found += _after(facts, group, ordered, at, until)
    return found


def _after(
    facts: ClusterFacts, group: str, events: Sequence[GroupEventRow], loaded_at: int, until: int
) -> list[ClusterFinding]:
    expelled = [
        e
        for e in events
        if e["kind"] == GroupEventKind.SESSION_EXPIRED
        and loaded_at < e["event_at"] < until
        and _is_due(facts, e, loaded_at)
    ]
    lost = [
        e for e in expelled if _returned(events, e, loaded_at) is None and facts.until_ms - e["event_at"] >= RETURNED_MS
    ]
    if not lost or not _others(facts, group, expelled, loaded_at):
        return []
    back = [_joined_later(events, e, loaded_at) for e in lost]
    ended = max(at for at in back if at is not None) if all(at is not None for at in back) else None
    names = sorted({_name(e)[0] for e in lost})
    hosts = sorted({e["client_host"] for e in lost if e["client_host"]})
    session = max(e["event_at"] for e in lost) - loaded_at
    return [
        ClusterFinding(
            pattern=Pattern.COORDINATOR_NOT_FOUND,
            subject=group,
            started_at=loaded_at,
            last_at=ended or max(e["event_at"] for e in lost),
            ended_at=ended,
            times=len(lost),
            group_ids=[group],
            instances=[*names, *hosts],
            sources=["log", "topic"],
            evidence=Evidence.INFERRED,
            explanation=(
                f"At {instant(loaded_at)}, another broker became coordinator of {shortened(group)}. "
                f"{count(len(lost), 'member')} ({named(names, 'member')}) sent nothing to it and "
                f"{'was' if len(lost) == 1 else 'were'} expelled {duration(session)} later, when the session ended, "
                "while other members of the group came back. "
                + (f"The last of them returned at {instant(ended)}." if ended else "Not all of them have returned.")
            ),
            action=(
                "Look whether the process still runs: a client that hangs must be restarted. Then update the client "
                "library, which should look for the coordinator again. If the process ended together with the broker, "
                "this is no fault of the client."
            ),
        )
    ]


def _is_due(facts: ClusterFacts, event: GroupEventRow, loaded_at: int) -> bool:
    """Return whether the member was expelled one session after the load."""
    waited = event["event_at"] - loaded_at
    sessions = {m["session_timeout_ms"] for m in facts.moved[event["group_id"]] if m["member_id"] == event["member_id"]}
    return any(session is not None and abs(waited - session) <= NEAR_MS for session in sessions)


def _others(facts: ClusterFacts, group: str, expelled: Sequence[GroupEventRow], loaded_at: int) -> bool:
    """Return whether the group had other members at the load, which were not expelled."""
    gone = {e["member_id"] for e in expelled}
    return any(
        m["member_id"] not in gone
        and m["valid_from_at"] <= loaded_at
        and (m["valid_to_at"] is None or m["valid_to_at"] >= loaded_at)
        for m in facts.moved[group]
    )


def _name(event: GroupEventRow) -> Name:
    return event["group_instance_id"] or event["client_id"] or event["member_id"], event["client_host"] or ""


def _joined_later(events: Sequence[GroupEventRow], event: GroupEventRow, loaded_at: int) -> int | None:
    """Return when the client joined after the load, perhaps under a new id while its old one had not been expelled."""
    joins = (GroupEventKind.JOINED, GroupEventKind.STATIC_RETURNED)
    later = (e for e in events if e["kind"] in joins and e["event_at"] >= loaded_at)
    own, name = event["member_id"], _name(event)
    return next((e["event_at"] for e in later if e["member_id"] != own and _name(e) == name), None)


def _returned(events: Sequence[GroupEventRow], event: GroupEventRow, loaded_at: int) -> int | None:
    at = _joined_later(events, event, loaded_at)
    return at if at is not None and at - event["event_at"] < RETURNED_MS else None
