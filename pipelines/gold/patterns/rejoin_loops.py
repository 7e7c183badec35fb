"""Generations without end that change nothing: unchanged members rejoin, or members expel each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import number
from pipelines.gold.patterns.group_facts import Finding, GroupFacts, is_logged, name_of, unique
from pipelines.gold.wording import period, times
from schemas.rows import GenerationMemberRow, GenerationRow
from schemas.states import Evidence, GroupEventKind, GroupProtocol, GroupType, Pattern, Trigger
from schemas.thresholds import FLAP_MS, LOOP, MINUTE_MS
from schemas.written import count, duration

IN_A_ROW = 5
"""Consecutive generations that change nothing. A rolling restart, a new topic or a move of the coordinator causes
fewer: cooperative members settle after two, and flapping leaders (`FLAPS`) are diagnosed from three on."""

NO_JOIN_MS = 10
"""A join phase this short waited for nobody: members that were not in it were removed although they lived."""

HEARTBEAT_MS, METADATA_AGE_MS = 3_000, 300_000
"""Defaults of heartbeat.interval.ms and metadata.max.age.ms."""

NOT_LOOPING = (Trigger.PROBING, Trigger.CONNECT_DELAY_EXPIRED)
TYPES = (GroupType.CONSUMER, GroupType.STREAMS, GroupType.OTHER)
Judge = Callable[[GroupFacts, GenerationRow, GenerationRow], bool]
Plan = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


def rejoin_loop(facts: GroupFacts) -> Iterator[Finding]:
    """Yield the newest run of generations that change nothing, and the newest in which members expel each other."""
    unchanged = [run for run in _runs(facts, _changes_nothing) if len(run) >= IN_A_ROW]
    expelling = _expelling_runs(facts)
    if expelling and (not unchanged or expelling[-1][-1]["joined_at"] >= unchanged[-1][-1]["joined_at"]):
        yield _expelling(facts, expelling[-1])
    elif unchanged:
        yield _unchanged(facts, unchanged[-1])


def expelling_generations(facts: GroupFacts) -> frozenset[Number]:
    """Return the generations in which members expelled each other."""
    return frozenset(number(g) for run in _expelling_runs(facts) for g in run)


def _expelling_runs(facts: GroupFacts) -> list[list[GenerationRow]]:
    return [run for run in _runs(facts, _expels) if len(run) >= IN_A_ROW and _is_mutual(facts, run)]


def _runs(facts: GroupFacts, is_part: Judge) -> Iterator[list[GenerationRow]]:
    """Yield runs of consecutive generations that are like `is_part`, with at most `FLAP_MS` between two of them."""
    run: list[GenerationRow] = []
    for before, g in pairwise(facts.generations):
        is_next = g["joined_at"] - before["joined_at"] <= FLAP_MS and is_part(facts, before, g)
        if is_next:
            run.append(g)
            continue
        if run:
            yield run
        run = []
    if run:
        yield run


def _changes_nothing(facts: GroupFacts, before: GenerationRow, g: GenerationRow) -> bool:
    if g["group_type"] not in TYPES or g["trigger"] in NOT_LOOPING or g["group_protocol"] == GroupProtocol.SHARE:
        return False
    plan = _plan(facts.of(g))
    return bool(plan) and plan == _plan(facts.of(before))


def _plan(members: Sequence[GenerationMemberRow]) -> Plan | None:
    """Return each member's assignment, or None if one is not known or nothing is assigned at all."""
    plan = []
    for m in members:
        if m["assigned"] is None:
            return None
        plan.append((m["member_id"], tuple((r["name"], r["index"]) for r in m["assigned"])))
    return tuple(plan) if any(given for _, given in plan) else None


def _expels(facts: GroupFacts, before: GenerationRow, g: GenerationRow) -> bool:
    """Return whether members were replaced although none left and no session can have expired."""
    is_replaced = bool(g["left_member_ids"]) and bool(g["joined_member_ids"])
    if not is_replaced or g["group_protocol"] != GroupProtocol.CLASSIC or g["group_type"] not in TYPES:
        return False
    if any(e["kind"] in (GroupEventKind.LEFT, GroupEventKind.SESSION_EXPIRED) and _is_seen(e["evidence"])
           for e in facts.departures_in(g)):  # fmt: skip
        return False
    gone = [m for m in facts.of(before) if m["member_id"] in set(g["left_member_ids"] or ())]
    is_short = g["joined_at"] - before["joined_at"] < min((m["session_timeout_ms"] or 0 for m in gone), default=0)
    has_no_time = any((m["rebalance_timeout_ms"] or 1) <= 0 for m in gone)
    is_at_once = is_logged(g) and g["join_ms"] is not None and g["join_ms"] <= NO_JOIN_MS
    return is_short and (has_no_time or is_at_once)


def _is_seen(evidence: str) -> bool:
    return evidence == Evidence.OBSERVED


def _is_mutual(facts: GroupFacts, run: Sequence[GenerationRow]) -> bool:
    """Return whether the same clients come again and again, unlike in a deploy, which replaces each once."""
    gone = Counter(_joined(facts, run))
    return bool(gone) and max(gone.values()) >= LOOP


def _joined(facts: GroupFacts, run: Sequence[GenerationRow]) -> list[str]:
    return [name_of(m) for g in run for m in facts.of(g) if m["member_id"] in set(g["joined_member_ids"] or ())]


def _unchanged(facts: GroupFacts, run: Sequence[GenerationRow]) -> Finding:
    leaders = _leaders(facts, run)
    usual = period([g["joined_at"] for g in run])
    reasons = Counter(reason for g in run if (reason := g["client_reason"] or g["trigger_reason"]))
    parts = [
        f"{count(len(run), 'generation')} in a row gave the same members the same assignment, {_often(run, usual)}.",
        _of_period(usual),
        f"The reason most often given: {reasons.most_common(1)[0][0][:160]}." if reasons else "No reason is recorded.",
    ]
    return _finding(
        facts,
        run,
        leaders,
        " ".join(filter(None, parts)),
        "Look at the log of the member that rejoins first (the leader in most cases): it states why it rejoins. Two "
        "brokers that return different metadata, a subscription that changes at each heartbeat, and a member that "
        "cannot sync in time are the usual reasons. Upgrade the client library if its issue tracker has this loop; "
        "longer timeouts do not end it.",
    )


def _expelling(facts: GroupFacts, run: Sequence[GenerationRow]) -> Finding:
    names = _joined(facts, run)
    usual = period([g["joined_at"] for g in run])
    limits = {m["rebalance_timeout_ms"] for g in run for m in facts.of(g) if m["rebalance_timeout_ms"] is not None}
    least = min(limits, default=None)
    joins = [g["join_ms"] for g in run if g["join_ms"] is not None]
    parts = [
        (
            f"Members replaced each other in {count(len(run), 'generation')} in a row, {_often(run, usual)}: nobody "
            "left, and no session can have expired in between."
        ),
        f"The join phases took {duration(median(joins))} (median), so nobody was waited for." if joins else "",
        f"A member joined with a rebalance timeout of {least} ms." if least is not None and least <= 0 else "",
    ]
    return _finding(
        facts,
        run,
        [name for name, _ in Counter(names).most_common()],
        " ".join(filter(None, parts)),
        "Give the client a rebalance timeout above 0 (max.poll.interval.ms; rebalance timeout in libraries that name "
        "it so): with 0 or less, the coordinator removes all members that do not join at once.",
    )


def _finding(
    facts: GroupFacts, run: Sequence[GenerationRow], names: Sequence[str], explanation: str, action: str
) -> Finding:
    last_at = run[-1]["completed_at"] or run[-1]["joined_at"]
    is_newest = run[-1] is facts.generations[-1]
    return Finding(
        pattern=Pattern.REJOIN_LOOP,
        started_at=run[0]["prepared_at"] or run[0]["joined_at"],
        last_at=last_at,
        ended_at=facts.ended(last_at, FLAP_MS) if is_newest else last_at,
        times=len(run),
        instances=unique(names),
        sources=facts.sources,
        evidence=Evidence.OBSERVED,
        explanation=explanation,
        action=action,
    )


def _leaders(facts: GroupFacts, run: Sequence[GenerationRow]) -> list[str]:
    """Return the members that rejoined first, if known, else the leaders, most frequent first."""
    named = [
        name_of(m)
        for g in run
        for m in facts.of(g)
        if (m["member_id"] == g["trigger_member_id"] if g["trigger_member_id"] else m["is_leader"])
    ]
    return [name for name, _ in Counter(named).most_common()]


def _often(run: Sequence[GenerationRow], usual: float | None) -> str:
    if usual is not None:
        return f"every {duration(usual)}"
    return f"within {duration(run[-1]['joined_at'] - run[0]['joined_at'])}" if len(run) > 1 else times(len(run))


def _of_period(usual: float | None) -> str:
    if usual is None:
        return ""
    if abs(usual - METADATA_AGE_MS) <= METADATA_AGE_MS / 10:
        return "That is the default metadata.max.age.ms: the metadata that a member reads differs from the leader's."
    if abs(usual - HEARTBEAT_MS) <= HEARTBEAT_MS / 5:
        return "That is the default heartbeat interval: members learn of each rebalance at once and start the next one."
    return (
        f"That is no default of a client; a timer of {duration(usual)} in the application may be the reason."
        if (usual > MINUTE_MS)
        else ""
    )
