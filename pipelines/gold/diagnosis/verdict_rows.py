"""Rows of `verdicts`: the verdict on each completed rebalance, with its proof."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from pipelines.gold.diagnosis.causes import Context
from pipelines.gold.diagnosis.departures import Departure
from pipelines.gold.diagnosis.verdict_reasons import reason
from pipelines.gold.diagnosis.verdicts import Judged, Judgment
from pipelines.gold.memberships import number
from pipelines.gold.pod_ends import PodEnd
from schemas.rows import GroupEventRow, VerdictOfGroup
from schemas.states import DiagnosisCause, GroupEventKind
from schemas.thresholds import failover_ms

MOST_EVENTS = 8
LONGEST = 300
"""Characters of one proof. Reasons of clients are untrusted text of any length."""

OF_COORDINATOR = (GroupEventKind.COORDINATOR_MOVED, GroupEventKind.FAILED_REBALANCE)
SHOWN = (*OF_COORDINATOR, GroupEventKind.LEFT, GroupEventKind.SESSION_EXPIRED, GroupEventKind.POLL_TIMEOUT,
         GroupEventKind.FENCED, GroupEventKind.JOINED, GroupEventKind.SETTINGS_CHANGED)  # fmt: skip


def verdict_rows(judged: Judgment, events: Iterable[GroupEventRow], start_ms: int, end_ms: int) -> list[VerdictOfGroup]:
    """Return a row for each judged rebalance that joined in [start_ms, end_ms), in milliseconds.

    `events` are the group's events, in any order.
    """
    chosen = [j for j in judged.rebalances if start_ms <= j.row["joined_at"] < end_ms]
    of_generation: dict[tuple[int, int | None], list[GroupEventRow]] = defaultdict(list)
    of_coordinator: list[GroupEventRow] = []
    for e in sorted(events, key=lambda e: (e["event_at"], e["kind"], e["member_id"])):
        if e["kind"] in OF_COORDINATOR:
            of_coordinator.append(e)
        elif e["kind"] in SHOWN:
            of_generation[e["incarnation"], e["generation_id"]].append(e)
    return [_row(j, judged, of_generation, of_coordinator) for j in chosen]


def _row(
    j: Judged,
    judged: Judgment,
    of_generation: Mapping[tuple[int, int | None], Sequence[GroupEventRow]],
    of_coordinator: Sequence[GroupEventRow],
) -> VerdictOfGroup:
    g = j.row
    moves = _moves(j, judged.known, of_coordinator)
    events = [e for part in judged.parts[number(g)] for e in of_generation.get(part, ())]
    names = set(j.instances)
    mine = [i for i in judged.known.instances if i.label in names]
    return {
        "incarnation": g["incarnation"],
        "generation_id": g["generation_id"],
        "joined_at": g["joined_at"],
        "verdict": j.verdict.value,
        "cause": j.found.cause.value,
        "set_off_by": j.found.set_off_by.value,
        "evidence": j.evidence.value,
        "instances": list(j.instances),
        "hosts": sorted({m.client_host for i in mine for m in i.memberships if m.client_host}),
        "lost_resource_seconds_min": j.loss.low / 1000,
        "lost_resource_seconds": j.loss.best / 1000,
        "lost_resource_seconds_max": j.loss.high / 1000,
        "reason": reason(j, moves),
        "folded_count": g.get("folded_count"),
        "pod_changes": [d.pod.row(d.instance.label) for d in _in_time(j.ended) if d.pod is not None],
        "proof": list(_proof(j, sorted([*moves, *events], key=lambda e: e["event_at"])[-MOST_EVENTS:])),
    }


def _moves(j: Judged, known: Context, of_coordinator: Sequence[GroupEventRow]) -> list[GroupEventRow]:
    """Return the coordinator's events that may have caused a rebalance.

    They are those of the minute before its start and, if the coordinator is the cause, those before its members were
    gone: sessions may be longer than a minute, and a member may return any time after it was removed.
    """
    g = j.row
    began, ended = g["prepared_at"] or g["joined_at"], g["completed_at"] or g["joined_at"]
    since = began - failover_ms(0) * 2
    if j.found.cause == DiagnosisCause.COORDINATOR:
        gone = [d for c in known.changes(g) if (d := c if isinstance(c, Departure) else c.after) is not None]
        since = min([since, *(min(began, d.at) - failover_ms(d.membership.session_timeout_ms) for d in gone)])
    return [e for e in of_coordinator if since <= e["event_at"] <= ended]


def _proof(j: Judged, events: Sequence[GroupEventRow]) -> Iterable[str]:
    g = j.row
    yield (
        f"{_moment(g['joined_at'])} generation {g['generation_id']}: record {g['source_offset']} of "
        f"__consumer_offsets-{g['source_partition']}"
    )
    if g.get("folded_count"):
        yield (
            f"{_moment(g['last_completed_at'] or g['joined_at'])} generation {g['last_generation_id']}: the last of "
            f"{g['folded_count']} that differ in number and times only"
        )
    if g["trigger_reason"]:
        yield f"The coordinator's reason: {g['trigger_reason']}"[:LONGEST]
    if g["client_reason"]:
        yield f"The client's reason: {g['client_reason']}"[:LONGEST]
    for d in _in_time(j.ended)[:MOST_EVENTS]:
        if d.pod is not None:
            yield _pod(d.pod, d.instance.label)[:LONGEST]
    for e in events:
        who = e.get("group_instance_id") or e.get("client_id") or e["member_id"]
        parts = (e["kind"].replace("_", " "), f"[{e['evidence']}]", who, e["detail"] and f"({e['detail']})")
        yield f"{_moment(e['event_at'])} {' '.join(filter(None, parts))}"[:LONGEST]


def _in_time(ended: Iterable[Departure]) -> list[Departure]:
    return sorted(ended, key=lambda d: (d.pod.change["marked_at"] if d.pod else 0, d.instance.label, d.at))


def _pod(end: PodEnd, instance: str) -> str:
    detail = f" ({end.change['detail']})" if end.change["detail"] else ""
    how = f"its address, the client host of {instance}" if end.is_by_address else f"its name in the ids of {instance}"
    return f"{_moment(end.change['marked_at'])} kubernetes [observed] {end.change['text']}{detail}, joined by {how}"


def _moment(ms: int) -> str:
    """Return a time as UTC text with milliseconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
