"""Markers on the timeline of a classic group: arrivals and departures, from log lines or from two records in a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from pipelines.member_identity import MemberIdentity
from pipelines.silver import registry, streams
from pipelines.silver.generation_log import GenerationLog
from pipelines.silver.generations import Generation, GroupIncarnations, Member, Replacement
from pipelines.silver.history import Event
from pipelines.silver.stops.commit_activity import CommitActivity
from pipelines.silver.stops.member_stops import departure
from schemas.coordinator_log import EventKind
from schemas.rows import GroupEventOfGroup
from schemas.states import Evidence, GroupEventKind, RebalanceMode

DEPARTURES = {
    EventKind.LEFT: GroupEventKind.LEFT,
    EventKind.SESSION_EXPIRED: GroupEventKind.SESSION_EXPIRED,
    # The rebalance timeout of a classic consumer is its max.poll.interval.ms (KIP-62).
    EventKind.REMOVED_NOT_REJOINED: GroupEventKind.POLL_TIMEOUT,
    EventKind.REMOVED_NOT_SYNCED: GroupEventKind.POLL_TIMEOUT,
    EventKind.STATIC_REPLACED: GroupEventKind.STATIC_RETURNED,
}
ANYTIME = {
    EventKind.FENCED: GroupEventKind.FENCED,
    EventKind.GROUP_LOADED: GroupEventKind.COORDINATOR_MOVED,
    EventKind.COULD_NOT_COMPLETE: GroupEventKind.FAILED_REBALANCE,
    EventKind.WRITE_FAILED: GroupEventKind.FAILED_REBALANCE,
    EventKind.CONVERSION_REFUSED: GroupEventKind.CONVERSION_REFUSED,
}
NEVER_SYNCED = "members joined, but the leader's assignment was never stored"


def event_row(
    at: int,
    kind: GroupEventKind,
    incarnation: int,
    *,
    evidence: Evidence,
    member: MemberIdentity | None = None,
    member_id: str = "",
    generation: int | None = None,
    detail: str | None = None,
) -> GroupEventOfGroup:
    return {
        "event_at": at,
        "kind": kind,
        "member_id": member.member_id if member else member_id,
        "incarnation": incarnation,
        "group_instance_id": member.group_instance_id if member else None,
        "client_id": member.client_id if member else None,
        "client_host": member.client_host if member else None,
        "generation_id": generation,
        "detail": detail,
        "evidence": evidence,
        "folded_count": None,
    }


def lifecycle(
    incarnations: GroupIncarnations, events: list[Event], unfinished: list[Event]
) -> Iterator[GroupEventOfGroup]:
    """Yield events that belong to no generation.

    Records show `created` and `dead`. Log lines show fencing, moves of the coordinator and failed rebalances, including
    `unfinished` ones that no generation followed yet.
    """
    for incarnation, record in incarnations.created:
        if record.at is not None:
            yield event_row(record.at, GroupEventKind.CREATED, incarnation, evidence=Evidence.OBSERVED, generation=0)
    for incarnation, record in incarnations.tombstones:
        if record.at is not None:
            yield event_row(record.at, GroupEventKind.DEAD, incarnation, evidence=Evidence.OBSERVED)
    yield from lifecycle_lines(events, [(g.joined_at, g.incarnation) for g in incarnations.generations])
    for event in unfinished:
        yield _never_synced(event, incarnations.generations[-1].incarnation, Evidence.INFERRED)


def lifecycle_lines(events: list[Event], incarnations: list[tuple[int, int]]) -> Iterator[GroupEventOfGroup]:
    """Yield events of log lines that belong to no generation; `incarnations` has begin and number of each one."""
    for event in events:
        kind = ANYTIME.get(EventKind(event.kind))
        if kind is not None:
            incarnation = max((number for at, number in incarnations if at <= event.at), default=0)
            row = event_row(
                event.at,
                kind,
                incarnation,
                evidence=Evidence.OBSERVED,
                member_id=event["member_id"] or "",
                detail=_event_detail(event),
            )
            yield {**row, "group_instance_id": event["group_instance_id"]}


def _event_detail(event: Event) -> str | None:
    match event.kind:
        case EventKind.GROUP_LOADED:
            broker = "a broker" if event["broker_id"] is None else f"broker {event['broker_id']}"
            return f"{broker} loaded the group and coordinates it"
        case EventKind.COULD_NOT_COMPLETE:
            return "no member joined again"
        case EventKind.WRITE_FAILED:
            return f"the assignment could not be stored: {event['reason']}"
    reason: str | None = event["reason"]
    return reason


def _never_synced(line: Event, incarnation: int, evidence: Evidence = Evidence.OBSERVED) -> GroupEventOfGroup:
    number: int = line["generation_id"]
    return event_row(
        line.at,
        GroupEventKind.FAILED_REBALANCE,
        incarnation,
        evidence=evidence,
        generation=number,
        detail=NEVER_SYNCED,
    )


def of_generation(g: Generation, log: GenerationLog, done: dict[str, CommitActivity]) -> Iterator[GroupEventOfGroup]:
    """Yield the arrivals and departures of this generation, failed attempts before it, and changes in the group."""
    previous = g.previous
    before = previous.final_members if previous else {}
    if previous is None and g.created is None and g.number == 1:
        yield event_row(g.joined_at, GroupEventKind.CREATED, g.incarnation, evidence=Evidence.INFERRED, generation=1)
    if previous is not None or g.is_first:
        for member_id in sorted(g.members.keys() - before.keys()):
            yield _arrival(g, log, g.members[member_id])
    for member_id in sorted(before.keys() - g.members.keys()):
        yield _departure(g, log, before[member_id], done.get(member_id))
    yield from _failed(g, log)
    yield from _refused(g)
    if g.is_empty:
        yield event_row(
            g.joined_at, GroupEventKind.EMPTY, g.incarnation, evidence=Evidence.OBSERVED, generation=g.number
        )
    elif previous is not None and not previous.is_empty:
        yield from _changes(g, previous, before)
    if previous is not None or g.is_first:
        yield from _elected(g, previous)
    yield from static_returns(g)


def static_returns(g: Generation) -> Iterator[GroupEventOfGroup]:
    """Yield the events of static members that returned within the generation."""
    for change in g.replacements:
        yield _returned(g, change)


def _arrival(g: Generation, log: GenerationLog, member: Member) -> GroupEventOfGroup:
    line = log.arrived.get(member.member_id)
    started_it = log.preparing is not None and log.preparing["member_id"] == member.member_id
    line = line or (log.preparing if started_it else None)
    return event_row(
        g.joined_at if line is None else line.at,
        GroupEventKind.JOINED,
        g.incarnation,
        evidence=Evidence.BOUNDED if line is None else Evidence.OBSERVED,
        member=member,
        generation=g.number,
        detail="had joined by this time" if line is None else line["client_reason"],
    )


def _departure(g: Generation, log: GenerationLog, member: Member, done: CommitActivity | None) -> GroupEventOfGroup:
    gone = departure(member, log)
    if gone.line is None:
        return event_row(
            g.joined_at,
            GroupEventKind.LEFT,
            g.incarnation,
            evidence=Evidence.INFERRED,
            member=member,
            generation=g.number,
            detail=_with_delay("gone by this time; it is not recorded whether it left or was removed", g, member),
        )
    kind, evidence = DEPARTURES[EventKind(gone.line.kind)], Evidence.OBSERVED
    detail = gone.line["client_reason"]
    if gone.is_poll_timeout:
        kind = GroupEventKind.POLL_TIMEOUT
    elif kind == GroupEventKind.LEFT and done is not None and gone.was_poll_timeout(done):
        kind, evidence = GroupEventKind.POLL_TIMEOUT, Evidence.INFERRED
        detail = "left after being silent for its whole max.poll.interval.ms; the client gave no reason"
    detail = _with_delay(detail, g, member)
    return event_row(
        gone.line.at, kind, g.incarnation, evidence=evidence, member=member, generation=g.number, detail=detail
    )


def _with_delay(detail: str | None, g: Generation, member: Member) -> str | None:
    """Return the detail. For a departed Connect worker it includes how much work waits for it, until when (KIP-415)."""
    waiting = len(member.assigned & g.waiting)
    if not waiting:
        return detail
    until = datetime.fromtimestamp((g.synced_at + g.delay_ms) / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
    return "; ".join(filter(None, (detail, f"{waiting} connectors and tasks wait for it until {until}")))


def _failed(g: Generation, log: GenerationLog) -> Iterator[GroupEventOfGroup]:
    """Yield attempts between two records: their join phase ended, and their leader never synced."""
    for line in log.attempts:
        yield _never_synced(line, g.incarnation)


def _refused(g: Generation) -> Iterator[GroupEventOfGroup]:
    """Yield an event for an error in the leader's assignment, which is sent instead of work."""
    errors = {m.tasks.error for m in g.members.values() if m.tasks is not None}
    elections = {m.elected.error for m in g.members.values() if m.elected is not None}
    texts = [streams.ERRORS[error] for error in sorted(errors) if error in streams.ERRORS]
    texts += [registry.ERRORS[error] for error in sorted(elections) if error in registry.ERRORS]
    if any(w.is_refused for w in g.workers):
        texts.append("the leader had not read the newest connector configuration: nothing was assigned")
    if not texts:
        return
    is_probing = errors == {streams.VERSION_PROBING}
    kind = GroupEventKind.SETTINGS_CHANGED if is_probing else GroupEventKind.FAILED_REBALANCE
    yield event_row(
        g.synced_at, kind, g.incarnation, evidence=Evidence.OBSERVED, generation=g.number, detail="; ".join(texts)
    )


def _elected(g: Generation, previous: Generation | None) -> Iterator[GroupEventOfGroup]:
    """Yield an event for a newly elected registry, which is not the leader of the Kafka group."""
    now, before = _election(g), _election(previous)
    if now is None or (before is not None and before.member_id == now.member_id):
        return
    yield event_row(
        g.synced_at,
        GroupEventKind.LEADER_CHANGED,
        g.incarnation,
        evidence=Evidence.OBSERVED,
        member=g.members.get(now.member_id or ""),
        generation=g.number,
        detail=f"elected registry {now.url}" if now.member_id is not None else "no registry elected",
    )


def _election(g: Generation | None) -> registry.Elected | None:
    """Return the elected registry, which is the same for every member."""
    return next((m.elected for m in g.members.values() if m.elected is not None), None) if g else None


def _changes(g: Generation, previous: Generation, before: Mapping[str, Member]) -> Iterator[GroupEventOfGroup]:
    is_led = g.mode != RebalanceMode.NONE
    if is_led and g.leader != previous.leader and g.leader not in {c.member.member_id for c in previous.replacements}:
        yield event_row(
            g.synced_at,
            GroupEventKind.LEADER_CHANGED,
            g.incarnation,
            evidence=Evidence.OBSERVED,
            member=g.members.get(g.leader or ""),
            generation=g.number,
        )
    if g.assignor != previous.assignor:
        yield event_row(
            g.synced_at,
            GroupEventKind.SETTINGS_CHANGED,
            g.incarnation,
            evidence=Evidence.OBSERVED,
            generation=g.number,
            detail=f"assignor {previous.assignor} -> {g.assignor}",
        )
    for member_id in sorted(g.members.keys() & before.keys()):
        old, new = before[member_id], g.members[member_id]
        if old.topics != new.topics:
            yield event_row(
                g.synced_at,
                GroupEventKind.SETTINGS_CHANGED,
                g.incarnation,
                evidence=Evidence.OBSERVED,
                member=new,
                generation=g.number,
                detail=f"subscription of {len(old.topics)} -> {len(new.topics)} topics",
            )


def _returned(g: Generation, change: Replacement) -> GroupEventOfGroup:
    return event_row(
        change.record.at if change.record.at is not None else g.synced_at,
        GroupEventKind.STATIC_RETURNED,
        g.incarnation,
        evidence=Evidence.OBSERVED,
        member=change.member,
        generation=g.number,
        detail=f"replaced {change.old}",
    )
