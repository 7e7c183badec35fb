"""The cause of a rebalance: the reason in the coordinator's log, or else a conclusion from two consecutive records."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.silver.generation_log import GenerationLog
from pipelines.silver.generations import Generation
from pipelines.silver.stops.commit_activity import CommitActivity
from pipelines.silver.stops.member_stops import HEARTBEAT_MS, MemberDeparture, departure
from schemas.states import Evidence, RebalanceMode, Trigger

CLOCKS_MS = 100
"""Tolerance in milliseconds for a scheduled rejoin. A member measures its delay with its own clock, from a start that
the coordinator's clock does not show exactly.
"""

REJOINED = (Trigger.LEADER_REJOINED, Trigger.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    trigger: Trigger
    evidence: Evidence
    member_id: str | None = None
    reason: str | None = None
    client_reason: str | None = None


def cause(g: Generation, log: GenerationLog, done: dict[str, CommitActivity]) -> Cause:
    """Return the cause; `done` has the commits of the previous generation's members in that generation."""
    start = log.preparing
    if start is not None and start["trigger"] is not None:
        return _logged_cause(g, log, done, Trigger(start["trigger"]))
    return _inferred(g, log, done)


def _logged_cause(g: Generation, log: GenerationLog, done: dict[str, CommitActivity], trigger: Trigger) -> Cause:
    start = log.preparing
    assert start is not None
    member_id, client_reason, evidence = start["member_id"], start["client_reason"], Evidence.OBSERVED
    if trigger == Trigger.MEMBER_LEFT:
        left = _first_left(g, log, start["member_ids"] or ([member_id] if member_id else []))
        if left is not None:
            member_id = left.member.member_id
            client_reason = client_reason or (left.line["client_reason"] if left.line else None)
            if left.is_poll_timeout:
                trigger = Trigger.POLL_TIMEOUT
            elif left.was_poll_timeout(done.get(member_id) or CommitActivity(since=0, working_at=0)):
                trigger, evidence = Trigger.POLL_TIMEOUT, Evidence.INFERRED
    elif trigger == Trigger.MEMBER_JOINED and (g.previous is None or g.previous.is_empty):
        trigger = Trigger.FIRST_MEMBER
    elif trigger in REJOINED and client_reason is None:
        # librdkafka gives no reason, so the records decide, and the evidence is `inferred`.
        refined = _rejoined(g, start.until) or (Trigger.METADATA_CHANGED if trigger == Trigger.UNKNOWN else None)
        if refined is not None:
            trigger, evidence = refined, Evidence.INFERRED
    return Cause(
        trigger=trigger, evidence=evidence, member_id=member_id, reason=start["reason"], client_reason=client_reason
    )


def _first_left(g: Generation, log: GenerationLog, named: list[str]) -> MemberDeparture | None:
    before = g.previous.final_members if g.previous else {}
    return next((departure(before[m], log) for m in named if m in before), None)


def _rejoined(g: Generation, began: int) -> Trigger | None:
    """Return why the same members rejoined: after revocations, with another subscription, because of partitions that
    the previous generation did not know, or as scheduled.

    `began` is a time by which the rebalance had begun.
    """
    previous = g.previous
    if previous is None:
        return None
    before = previous.final_members
    if any(m.topics != before[i].topics for i, m in g.members.items() if i in before):
        return Trigger.SUBSCRIPTION_CHANGED
    if previous.mode == RebalanceMode.COOPERATIVE and _gave_up(previous):
        return Trigger.COOPERATIVE_FOLLOWUP
    if previous.mode == RebalanceMode.INCREMENTAL:
        return _workers_rejoined(g, previous, began)
    scheduled = _streams_rejoined(previous, began)
    return Trigger.METADATA_CHANGED if scheduled is None and _has_new_partitions(g, previous) else scheduled


def _has_new_partitions(g: Generation, previous: Generation) -> bool:
    """Return whether a generation of consumers assigns partitions that nobody had or gave up before."""
    if g.protocol_type != "consumer" or not previous.owners:
        return False
    known = previous.owners.keys() | {r for m in previous.members.values() for r in m.owned or ()}
    return bool(g.owners.keys() - known)


def _workers_rejoined(g: Generation, previous: Generation, began: int) -> Trigger | None:
    """Return why Connect workers rejoined: the delay for lost work ended, a second step, or a new configuration."""
    if previous.waiting and began >= previous.synced_at + previous.delay_ms - CLOCKS_MS:
        return Trigger.CONNECT_DELAY_EXPIRED
    backed_off = previous.delay_ms > 0 and not previous.waiting
    if previous.revoked or backed_off:
        return Trigger.COOPERATIVE_FOLLOWUP
    if g.config_offset is not None and previous.config_offset is not None and g.config_offset > previous.config_offset:
        return Trigger.METADATA_CHANGED
    return None


def _streams_rejoined(previous: Generation, began: int) -> Trigger | None:
    """Return why Streams members rejoined: the leader had told some of them to do so at once (0) or at a given time."""
    times = [m.tasks.next_rebalance_at for m in previous.final_members.values() if m.tasks is not None]
    scheduled = [at for at in times if at is not None]
    if 0 in scheduled:
        return Trigger.COOPERATIVE_FOLLOWUP
    return Trigger.PROBING if scheduled and began >= min(scheduled) - CLOCKS_MS else None


def _gave_up(g: Generation) -> bool:
    """Return whether a member joined with a partition that has no owner now (first step of KIP-429)."""
    owned = {resource for m in g.members.values() for resource in m.owned or ()}
    return bool(owned - g.owners.keys())


def _inferred(g: Generation, log: GenerationLog, done: dict[str, CommitActivity]) -> Cause:
    previous = g.previous
    if previous is None or previous.is_empty:
        is_first = g.is_first or previous is not None
        trigger = Trigger.FIRST_MEMBER if is_first and not g.is_empty else Trigger.UNKNOWN
        return Cause(trigger=trigger, evidence=Evidence.INFERRED)
    before = previous.final_members
    joined, left = g.members.keys() - before.keys(), before.keys() - g.members.keys()
    if joined and left:
        return Cause(trigger=Trigger.UNKNOWN, evidence=Evidence.INFERRED)
    if joined:
        return Cause(
            trigger=Trigger.MEMBER_JOINED,
            evidence=Evidence.INFERRED,
            member_id=next(iter(joined)) if len(joined) == 1 else None,
        )
    if left:
        return _one_left(g, log, sorted(left), done)
    return Cause(trigger=_rejoined(g, g.joined_at) or Trigger.UNKNOWN, evidence=Evidence.INFERRED)


def _one_left(g: Generation, log: GenerationLog, left: list[str], done: dict[str, CommitActivity]) -> Cause:
    """Return the cause of a departure.

    A commit renews the session, so a member that committed within its session timeout cannot have expired. A
    client that commits while its handler is blocked, without progress although records waited, left because it did not
    poll.
    """
    assert g.previous is not None
    before = g.previous.final_members
    lines = [departure(before[m], log).line for m in left]
    logged = next((e for e in lines if e is not None and e["trigger"]), None)
    if logged is not None:
        return Cause(trigger=Trigger(logged["trigger"]), evidence=Evidence.INFERRED, member_id=logged["member_id"])
    only = left[0] if len(left) == 1 else None
    if only and only in done and departure(before[only], log).was_blocked(done[only]):
        return Cause(trigger=Trigger.POLL_TIMEOUT, evidence=Evidence.INFERRED, member_id=only)
    fresh = [m for m in left if (w := done.get(m)) and w.last and g.joined_at - w.last < before[m].session_timeout_ms]
    trigger = Trigger.MEMBER_LEFT if len(fresh) == len(left) else Trigger.UNKNOWN
    if only and not fresh and (w := done.get(only)) and w.last:
        silent = g.joined_at - w.last
        # A silence of this length may also be a slow poll. The commits alone do not distinguish the two.
        too_short_to_poll = silent < before[only].rebalance_timeout_ms - HEARTBEAT_MS
        if silent < before[only].session_timeout_ms * 3 // 2 and too_short_to_poll:
            trigger = Trigger.SESSION_EXPIRED
    return Cause(trigger=trigger, evidence=Evidence.INFERRED, member_id=only)
