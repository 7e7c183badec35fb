"""Generations without end that change nothing: unchanged members rejoin, or members expel each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from pipelines.gold.patterns.group_facts import GroupFacts, GroupFinding, name_of, unique
from pipelines.gold.rejoin_runs import expelling_runs, joined, unchanged_runs
from pipelines.gold.wording import period, times
from schemas.folded_rows import count_of, instants_of
from schemas.rows import GenerationRow
from schemas.states import Evidence, Pattern
from schemas.thresholds import FLAP_MS, MINUTE_MS
from schemas.written import count, duration

HEARTBEAT_MS, METADATA_AGE_MS = 3_000, 300_000
"""Defaults of heartbeat.interval.ms and metadata.max.age.ms."""


def rejoin_loop(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield the newest run of generations that change nothing, and the newest in which members expel each other."""
    unchanged, expelling = unchanged_runs(facts.life), expelling_runs(facts.life)
    if expelling and (not unchanged or expelling[-1][-1]["joined_at"] >= unchanged[-1][-1]["joined_at"]):
        yield _expelling(facts, expelling[-1])
    elif unchanged:
        yield _unchanged(facts, unchanged[-1])


def _unchanged(facts: GroupFacts, run: Sequence[GenerationRow]) -> GroupFinding:
    leaders = _leaders(facts, run)
    usual = period(instants_of(run))
    reasons = Counter(reason for g in run if (reason := g["client_reason"] or g["trigger_reason"]))
    parts = [
        f"{_generations(run)} in a row gave the same members the same assignment, {_often(run, usual)}.",
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


def _expelling(facts: GroupFacts, run: Sequence[GenerationRow]) -> GroupFinding:
    names = joined(facts.life, run)
    usual = period(instants_of(run))
    limits = {m["rebalance_timeout_ms"] for g in run for m in facts.of(g) if m["rebalance_timeout_ms"] is not None}
    least = min(limits, default=None)
    joins = [g["join_ms"] for g in run if g["join_ms"] is not None]
    parts = [
        (
            f"Members replaced each other in {_generations(run)} in a row, {_often(run, usual)}: nobody "
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
) -> GroupFinding:
    last_at = run[-1]["completed_at"] or run[-1]["joined_at"]
    is_newest = run[-1] is facts.generations[-1]
    return GroupFinding(
        pattern=Pattern.REJOIN_LOOP,
        started_at=run[0]["prepared_at"] or run[0]["joined_at"],
        last_at=last_at,
        ended_at=facts.ended(last_at, FLAP_MS) if is_newest else last_at,
        times=count_of(run),
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


def _generations(run: Sequence[GenerationRow]) -> str:
    return count(count_of(run), "generation")


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
