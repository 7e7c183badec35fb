"""Changes of protocol or assignor that the coordinator refuses, or that stay half done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from pipelines.gold.patterns.group_facts import LOG, TOPIC, GroupFacts, GroupFinding, name_of, unique
from pipelines.gold.wording import times, with_repeats
from schemas.rows import GenerationRow, GroupEventRow
from schemas.states import WITH_CLASSIC, Evidence, GroupEventKind, GroupProtocol, Pattern, Trigger
from schemas.thresholds import HOUR_MS, LOOP
from schemas.written import count, duration

ROLLED_MS = 2 * HOUR_MS
"""Longest rolling upgrade. A group that is mixed for longer is taken for half done."""

NO_TRACE = (
    "Members that the coordinator refuses with INCONSISTENT_GROUP_PROTOCOL leave no trace in the topic, and often none "
    "in the broker's log: compare the number of members with the number of running processes."
)


def migration_incomplete(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield refused conversions, members of both protocols that last, and assignors that alternate; at most one."""
    for finder in (_refused, _mixed, _alternating):
        found = finder(facts)
        if found is not None:
            yield found
            return


def _refused(facts: GroupFacts) -> GroupFinding | None:
    refusals = [e for e in facts.events if e["kind"] == GroupEventKind.CONVERSION_REFUSED]
    if not refusals:
        return None
    converted = [
        g["joined_at"]
        for g in facts.generations
        if g["trigger"] in (Trigger.UPGRADE, Trigger.DOWNGRADE) and g["joined_at"] > refusals[-1]["event_at"]
    ]
    reason = Counter(e["detail"] for e in refusals).most_common(1)[0][0]
    reason_text = f" The reason: {reason[:200]}." if reason else ""
    return GroupFinding(
        pattern=Pattern.MIGRATION_INCOMPLETE,
        started_at=refusals[0]["event_at"],
        last_at=refusals[-1]["event_at"],
        ended_at=converted[0] if converted else None,
        times=len(refusals),
        sources=(LOG,),
        evidence=Evidence.OBSERVED,
        explanation=f"The coordinator refused to convert the group {times(len(refusals))}.{reason_text} {NO_TRACE}",
        action=_allow(refusals),
    )


def _allow(refusals: Sequence[GroupEventRow]) -> str:
    detail = " ".join(e["detail"] or "" for e in refusals)
    if "polic" in detail:
        return (
            "Set group.consumer.migration.policy on the brokers to bidirectional (or to upgrade or downgrade), or stop "
            "all members before the change."
        )
    return (
        "Remove what the reason names (members with another assignor or with a subscription that cannot be read), or "
        "stop all members and start them again with the new protocol."
    )


def _mixed(facts: GroupFacts) -> GroupFinding | None:
    """Return a group of the consumer protocol that still has classic members, hours after the first of both."""
    classic = {e["member_id"] for e in facts.events if e["detail"] == WITH_CLASSIC}
    # A process that starts with the consumer protocol has another member id.
    before = [g for g in facts.generations if g["group_protocol"] == GroupProtocol.CLASSIC]
    classic |= {m["member_id"] for g in before for m in facts.of(g)}
    run: list[GenerationRow] = []
    for g in facts.generations:
        ids = {m["member_id"] for m in facts.of(g)}
        is_mixed = g["group_protocol"] == GroupProtocol.CONSUMER and bool(ids & classic) and bool(ids - classic)
        run = [*run, g] if is_mixed else []
    if not run or facts.as_of - run[0]["joined_at"] < ROLLED_MS:
        return None
    members = facts.of(run[-1])
    old = unique(name_of(m) for m in members if m["member_id"] in classic)
    new = unique(name_of(m) for m in members if m["member_id"] not in classic)
    return GroupFinding(
        pattern=Pattern.MIGRATION_INCOMPLETE,
        started_at=run[0]["joined_at"],
        last_at=run[-1]["joined_at"],
        ended_at=None,
        times=len(run),
        instances=[*old, *new],
        sources=(TOPIC,),
        evidence=Evidence.OBSERVED,
        explanation=(
            f"For at least {duration(facts.as_of - run[0]['joined_at'])}, {count(len(old), 'member')} "
            f"({with_repeats(old)}) used the classic protocol and {count(len(new), 'member')} "
            f"({with_repeats(new)}) the consumer protocol. {NO_TRACE}"
        ),
        action="Deploy the remaining members with group.protocol=consumer, or roll the others back.",
    )


def _alternating(facts: GroupFacts) -> GroupFinding | None:
    """Return a group whose assignor went back and forth: members prefer different ones, and some lack the other."""
    led = [g for g in facts.completed if g["assignor"] and g["group_protocol"] == GroupProtocol.CLASSIC]
    switches = [g for before, g in pairwise(led) if g["assignor"] != before["assignor"]]
    if len(switches) < LOOP:
        return None
    used = unique(g["assignor"] or "" for g in [led[0], *switches])
    last_at = switches[-1]["joined_at"]
    return GroupFinding(
        pattern=Pattern.MIGRATION_INCOMPLETE,
        started_at=switches[0]["joined_at"],
        last_at=last_at,
        ended_at=facts.ended(last_at),
        times=len(switches),
        sources=(TOPIC,),
        evidence=Evidence.OBSERVED,
        explanation=(
            f"The assignor changed {times(len(switches))}, between {' and '.join(used)}: the members do not all "
            f"support the same ones, so it depends on who is in the group. {NO_TRACE}"
        ),
        action=(
            "Finish the change: first deploy all members with both assignors, then all with the new one alone "
            "(partition.assignment.strategy)."
        ),
    )
