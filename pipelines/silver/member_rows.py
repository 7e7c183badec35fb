"""Rows of `generation_members` for classic groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipelines.silver.client_library import LIKE_JAVA, Recognized
from pipelines.silver.commits.committers import with_commits
from pipelines.silver.generation_log import GenerationLog
from pipelines.silver.generation_rows import prepared
from pipelines.silver.generations import Generation, Member
from pipelines.silver.history import Resource
from pipelines.silver.stops.commit_activity import CommitActivity
from schemas.client_libraries import REASONS
from schemas.rows import GenerationMemberOfGroup, ResourceRow
from schemas.states import ClientLibrary, Evidence, LibrarySign


def member_rows(
    g: Generation,
    log: GenerationLog,
    done: dict[str, CommitActivity],
    until: int | None,
    by_commit: Mapping[str, ClientLibrary],
) -> list[GenerationMemberOfGroup]:
    """Return rows of `generation_members`. A static replacement ends one member id and begins another.

    `by_commit` are the libraries that the members' commits show (`committers.by_commits`).
    """
    starts = dict.fromkeys(g.members, g.synced_at)
    ends: dict[str, int | None] = dict.fromkeys(g.members, until)
    members: list[tuple[Member, frozenset[Resource]]] = [(m, m.assigned) for m in g.members.values()]
    assigned = {m.member_id: m.assigned for m in g.members.values()}
    for change in g.replacements:
        at = change.record.at if change.record.at is not None else g.synced_at
        ends[change.old], ends[change.member.member_id] = at, until
        starts[change.member.member_id] = at
        assigned[change.member.member_id] = assigned[change.old]
        members.append((change.member, assigned[change.old]))
    _, begun, _ = prepared(g, log)
    reasons = _reasons(log)
    rows = []
    for member, given in members:
        in_join = member.member_id in g.members
        came = _rejoined(member.member_id, g, log, done, begun) if in_join else (None, None)
        named = by_commit.get(member.member_id)
        shown = member.library if named is None else with_commits(member.library, named)
        library = _with_reasons(shown, reasons.get(member.member_id, ()))
        rows.append(_member_row(g, member, given, (starts[member.member_id], ends[member.member_id]), came, library))
    return rows


def _reasons(log: GenerationLog) -> dict[str, list[str]]:
    """Return by member id the reasons for joining and leaving that members stated in this generation's lines."""
    out: dict[str, list[str]] = {}
    for line in (log.preparing, log.first_preparing, *log.departures, *log.arrived.values()):
        if line is not None and line["member_id"] and line["client_reason"]:
            out.setdefault(line["member_id"], []).append(line["client_reason"])
    return out


def _with_reasons(found: Recognized, reasons: Iterable[str]) -> Recognized:
    """Return the library of a member that also stated these reasons. Streams and Connect tasks state Java's."""
    by_reason = next(filter(None, map(_of_reason, reasons)), None)
    if by_reason is None or found.evidence == Evidence.OBSERVED:
        return found
    is_framework = by_reason == ClientLibrary.JAVA and found.library in LIKE_JAVA
    return Recognized(found.library if is_framework else by_reason, Evidence.OBSERVED, LibrarySign.REASON)


def _of_reason(reason: str) -> ClientLibrary | None:
    return next((library for beginning, library in REASONS if reason.startswith(beginning)), None)


def not_before(since: int, end: int | None) -> int | None:
    """Return the end of a time that began at `since`, in milliseconds; None if it goes on.

    The record of the end may have the time of another broker, whose clock is behind.
    """
    return None if end is None else max(since, end)


def _member_row(
    g: Generation,
    member: Member,
    given: frozenset[Resource],
    valid: tuple[int, int | None],
    rejoined: tuple[int, int] | tuple[None, None],
    library: Recognized,
) -> GenerationMemberOfGroup:
    return {
        "incarnation": g.incarnation,
        "generation_id": g.number,
        "member_id": member.member_id,
        "valid_from_at": valid[0],
        "valid_to_at": not_before(valid[0], valid[1]),
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "client_library": library.library,
        "client_library_sign": library.sign,
        "client_library_evidence": library.evidence,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "is_leader": member.member_id == g.leader,
        "previous_generation_id": member.previous_generation,
        "subscribed_topics": sorted(member.topics),
        "subscription_version": member.shape.subscription_version if member.shape is not None else None,
        "subscription_rack": member.shape.rack if member.shape is not None else None,
        "user_data_layout": member.shape.user_data_layout if member.shape is not None else None,
        "owned": None if member.owned is None else resources(member.owned),
        "assigned": None if g.is_closed else resources(given),
        "standby": resources(member.tasks.standby) if member.tasks is not None else None,
        # A record of a classic group does not distinguish warm-up tasks from standby tasks.
        "warmup": None,
        "connect_delay_ms": member.worker.delay_ms if member.worker is not None else None,
        "rejoined_at_earliest": rejoined[0],
        "rejoined_at_latest": rejoined[1],
        "reconciled_at": None,
    }


def resources(of: frozenset[Resource]) -> list[ResourceRow]:
    """Return resources ordered by name and index."""
    return [{"name": name, "index": index} for name, index in sorted(of)]


def _rejoined(
    member_id: str, g: Generation, log: GenerationLog, done: dict[str, CommitActivity], start: int
) -> tuple[int, int]:
    """Return the earliest and latest time at which the member joined, in milliseconds.

    The member that triggered the rebalance joined at its start. Another member joined after its last commit.
    """
    line = log.first_preparing
    arrival = log.arrived.get(member_id)
    if arrival is not None:
        return arrival.at, min(arrival.until, max(arrival.at, g.joined_at))
    if line is not None and line["member_id"] == member_id:
        return line.at, min(line.until, max(line.at, g.joined_at))
    earliest = start if line is None else line.at
    last = done[member_id].last if member_id in done else None
    return (min(max(earliest, last), g.joined_at) if last is not None else min(earliest, g.joined_at)), g.joined_at
