"""Rows of `generations` for classic groups."""

from __future__ import annotations

from pipelines.silver.generation_log import GenerationLog
from pipelines.silver.generations import Generation
from pipelines.silver.history import Resource
from pipelines.silver.stops.commit_activity import CommitActivity
from pipelines.silver.triggers import Cause
from schemas.coordinator_log import EventKind
from schemas.rows import GenerationOfGroup, ResourceRow
from schemas.states import Evidence, GenerationOutcome, GroupProtocol, GroupType, NotCosted

APART_MS = 10_000
"""Maximum milliseconds between a dynamic member's first two JoinGroups, which are one round trip apart. A later
JoinGroup belongs to another attempt.
"""

TYPES = {
    "consumer": GroupType.CONSUMER,
    "connect": GroupType.CONNECT,
    "sr": GroupType.SCHEMA_REGISTRY,
}


def group_type(g: Generation) -> GroupType:
    """Return the group type. Kafka Streams joins as a consumer with the single protocol `stream`."""
    if g.protocol_type == "consumer" and g.assignor == "stream":
        return GroupType.STREAMS
    return TYPES.get(g.protocol_type, GroupType.OTHER)


def generation_row(
    g: Generation, log: GenerationLog, why: Cause, done: dict[str, CommitActivity], moved: int
) -> GenerationOfGroup:
    """Return the row of `generations`."""
    previous = g.previous
    before = previous.final_members if previous else {}
    start, earliest, latest = prepared(g, log)
    completed = g.completed_at
    joined = g.joined_at if g.is_join_recorded else None
    slowest, waited = _slowest(g, log, done)
    return {
        "incarnation": g.incarnation,
        "generation_id": g.number,
        "joined_at": g.joined_at,
        "outcome": GenerationOutcome.EMPTY if g.is_empty else GenerationOutcome.COMPLETED,
        "group_type": group_type(g),
        "group_protocol": GroupProtocol.CLASSIC,
        "protocol_type": g.protocol_type,
        "assignor": g.assignor,
        "rebalance_mode": g.mode,
        "leader_member_id": g.leader,
        "coordinator_id": next(
            (e["broker_id"] for e in (log.joined, log.synced, log.preparing) if e and e["broker_id"] is not None),
            None,
        ),
        "member_count": len(g.members),
        "static_member_count": sum(m.group_instance_id is not None for m in g.members.values()),
        "prepared_at": start,
        "prepared_at_earliest": earliest,
        "prepared_at_latest": latest,
        "synced_at": None if g.is_empty else g.synced_at,
        "completed_at": completed,
        "join_ms": None if start is None or joined is None else joined - start,
        "sync_ms": None if g.is_empty or joined is None else g.synced_at - joined,
        "rebalance_ms": None if start is None else completed - start,
        "rebalance_ms_min": max(0, completed - latest),
        "rebalance_ms_max": max(0, completed - earliest),
        "trigger": why.trigger,
        "trigger_evidence": why.evidence,
        "trigger_member_id": why.member_id,
        "trigger_reason": why.reason,
        "client_reason": why.client_reason,
        "slowest_member_id": slowest,
        "slowest_waited_ms": waited,
        "joined_member_ids": sorted(g.members.keys() - before.keys()) if previous or g.is_first else None,
        "left_member_ids": sorted(before.keys() - g.members.keys()) if previous else None,
        "resources_assigned": None if g.is_closed else len(g.owners),
        "resources_moved": None if g.is_closed else moved,
        "not_costed": _not_costed(g),
        "resources_not_costed": _resources_not_costed(g),
        "missing_partitions": [ResourceRow(name=t, index=p[0]) for t, p in sorted(g.missing.items())] or None,
        "skipped_generations": _skipped(g, log),
        "is_empty": g.is_empty,
        "evidence": Evidence.BOUNDED if start is None else Evidence.OBSERVED,
        "log_epoch": g.position[0],
        "source_partition": g.record.partition,
        "source_offset": g.position[1],
        "folded_count": None,
        "last_generation_id": None,
        "last_completed_at": None,
        "unstable_ms": None,
    }


def prepared(g: Generation, log: GenerationLog) -> tuple[int | None, int, int]:
    """Return the start of the rebalance in milliseconds: exact or None, the earliest and the latest time.

    The exact time comes from a log line or, since 4.x, from the record of generation 0 that the first JoinGroup of a
    new group writes. Without it, the start lies after the previous record. It also lies at most the longest rebalance
    timeout before the end of the join phase (`GroupMetadata.rebalanceTimeoutMs`), if a record contains that end.
    """
    start = log.preparing
    if start is not None:
        exact = start.at if start.precision <= 1 else None
        return exact, start.at, min(start.until, max(start.at, g.joined_at))
    longest = _longest_join_phase(g)
    if g.created is not None and g.created.at is not None and g.number == 1:
        created = g.created.at
        # A dynamic member joins twice; if the client dies in between, the group exists without a rebalance.
        exact = created if g.joined_at - created <= max(longest, APART_MS) else None
        return exact, min(created, g.joined_at), g.joined_at
    earliest = g.joined_at - longest if longest else g.joined_at
    if g.previous is not None:
        since = g.previous.synced_at
        earliest = max(since, earliest) if longest and g.is_join_recorded and not _skipped_possible(g) else since
    return None, min(earliest, g.joined_at), g.joined_at


def _longest_join_phase(g: Generation) -> int:
    """Return the longest rebalance timeout in milliseconds, or 0 if the group was empty.

    The coordinator waits for as long as the members then in the group allow, and the one that joined is among them.
    """
    before = g.members if g.previous is None else g.previous.final_members
    members = (*before.values(), *g.members.values()) if before else ()
    return max((m.rebalance_timeout_ms for m in members), default=0)


def _not_costed(g: Generation) -> NotCosted | None:
    if not g.is_closed and g.previous is not None and g.previous.is_closed:
        return NotCosted.UNKNOWN_BEFORE
    return g.not_costed


def _resources_not_costed(g: Generation) -> int | None:
    """Return the count of listed resources without a cost, or None if there are none or the count is not known."""
    if g.is_closed:
        return sum(m.entries for m in g.members.values()) or None
    return sum(map(len, g.missing.values())) or None


def _skipped_possible(g: Generation) -> bool:
    """Return whether attempts without a record may lie before this generation, each with its own join phase."""
    return g.previous is not None and g.number - g.previous.number > 1


def _skipped(g: Generation, log: GenerationLog) -> int | None:
    """Return the count of generations before this one that never completed, or None if records may be compacted."""
    if g.previous is None and not g.is_first:
        return None
    last = g.previous.number if g.previous else 0
    missing = g.number - last - 1
    if missing == 0 or len({e["generation_id"] for e in log.attempts} - {g.number}) == missing:
        return missing
    came_from = [m.previous_generation for m in g.members.values() if m.previous_generation is not None]
    known = [number for number in came_from if number >= 0]
    return missing if known and max(known) <= last else None


def _slowest(g: Generation, log: GenerationLog, done: dict[str, CommitActivity]) -> tuple[str | None, int | None]:
    """Return the member that the join phase waited for and the wait in milliseconds.

    It is a member that was removed at the end of the phase, or the member whose commit during the rebalance came last.
    """
    start = log.first_preparing
    if start is None or g.previous is None:
        return None, None
    for line in log.departures:
        ended_it = line.kind in (EventKind.SESSION_EXPIRED, EventKind.REMOVED_NOT_REJOINED)
        if ended_it and line is not start and start.until < line.at and abs(line.at - g.joined_at) <= 100:
            named = line["member_id"] or next(iter(line["member_ids"] or ()), None)
            return named, g.joined_at - start.at
    rejoined = sorted(
        ((w.last, m) for m, w in done.items() if m in g.members and w.last is not None and w.last >= start.at),
        reverse=True,
    )
    if not rejoined or g.joined_at - rejoined[0][0] > 100:
        return None, None
    others = max(rejoined[1][0] if len(rejoined) > 1 else start.at, start.at)
    return rejoined[0][1], g.joined_at - others


def moved(g: Generation, last_owner: dict[Resource, str]) -> int:
    """Return the count of resources with another owner than before, and update `last_owner`."""
    changed = sum(r in last_owner and last_owner[r] != owner for r, owner in g.owners.items())
    last_owner.update(g.owners)
    for change in g.replacements:
        for resource, owner in last_owner.items():
            if owner == change.old:
                last_owner[resource] = change.member.member_id
    return changed
