"""Connectors and tasks that nobody runs until scheduled.rebalance.max.delay.ms is over (KIP-415)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pipelines.gold.patterns.group_facts import GroupFacts, GroupFinding, unique
from pipelines.gold.wording import median_duration, times, with_repeats
from schemas.rows import StallRow
from schemas.states import Evidence, GroupType, Pattern, StallCause
from schemas.written import count, duration

LOST = (StallCause.CONNECT_DELAY, StallCause.MEMBER_LOST)
"""Causes of stops of work whose worker is gone; one that was killed is also waited for until its session expires."""

WHOLE = 0.9
"""Part of the delay that a resource must have waited. A worker that returns in time gets its work back earlier."""


def connect_delay(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield a Connect cluster whose lost work waited until the delay expired, or waits for that now."""
    if not any(g["group_type"] == GroupType.CONNECT for g in facts.generations):
        return
    rounds: dict[int, list[StallRow]] = defaultdict(list)
    for stall in facts.silver["stalls"]:
        if stall["cause"] in LOST and _has_waited(facts, stall):
            rounds[stall["stopped_by_offset"]].append(stall)
    if not rounds:
        return
    stalls = [stall for _, mine in sorted(rounds.items()) for stall in mine]
    waiting = [s for s in stalls if s["resumed_at_earliest"] is None]
    ends = [s["resumed_at_latest"] or s["resumed_at_earliest"] or 0 for s in stalls]
    delay_ms = max(_delay(facts, s) for s in stalls)
    lost = unique(facts.known.name(s["from_member_id"]) or s["from_member_id"] for s in stalls)
    work = count(len(stalls), "resource")
    lengths = [s["stopped_ms"] for s in stalls if s["stopped_ms"] is not None]
    took = f", {median_duration(lengths)} each (median)" if lengths else ""
    now = f" {len(waiting):,} of them have no worker at the end of the data." if waiting else ""
    yield GroupFinding(
        pattern=Pattern.CONNECT_DELAY,
        started_at=min(s["stopped_at_latest"] for s in stalls),
        last_at=facts.as_of if waiting else max(ends),
        ended_at=None if waiting else max(ends),
        times=len(rounds),
        instances=lost,
        sources=facts.sources,
        evidence=Evidence.OBSERVED,
        explanation=(
            f"Connectors and tasks of a worker that was gone waited until scheduled.rebalance.max.delay.ms "
            f"({duration(delay_ms)}) was over, {times(len(rounds))}: {work}{took}. The workers: {with_repeats(lost)}."
            f"{now} The assignments contain the delay."
        ),
        action=(
            "If workers restart under another name or address, or do not return, shorten "
            "scheduled.rebalance.max.delay.ms on all workers; if they return just after it, lengthen it. Until it is "
            "over, a rebalance does not help: POST /connectors/NAME/restart?includeTasks=true does not assign tasks "
            "that wait."
        ),
    )


def _delay(facts: GroupFacts, stall: StallRow) -> int:
    """Return the delay that the assignment after the loss contained, in milliseconds."""
    members = facts.members.get((stall["incarnation"], stall["generation_id"]), ())
    return max((m["connect_delay_ms"] or 0 for m in members), default=0)


def _has_waited(facts: GroupFacts, stall: StallRow) -> bool:
    """Return whether the resource waited for the whole delay after the assignment, or still waits."""
    delay_ms, ends = _delay(facts, stall), stall["resumed_at_latest"]
    since = facts.completed_at.get((stall["incarnation"], stall["generation_id"]))
    return delay_ms > 0 and (ends is None or (since is not None and ends - since >= WHOLE * delay_ms))
