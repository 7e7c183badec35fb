"""Rows of `patterns`: what each finder found in one window of one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pipelines.gold.diagnosis.causes import Context, context
from pipelines.gold.memberships import Silver
from pipelines.gold.patterns.connect_waits import connect_delay
from pipelines.gold.patterns.group_facts import GroupFacts, GroupFinding
from pipelines.gold.patterns.instance_ids import instance_id_not_kept, instance_id_used_twice
from pipelines.gold.patterns.migrations import migration_incomplete
from pipelines.gold.patterns.registries import registry_without_leader
from pipelines.gold.patterns.rejoin_loops import rejoin_loop
from pipelines.gold.patterns.restarts import never_closed, poll_timeouts
from pipelines.gold.patterns.subscriptions import group_id_shared, topic_without_owner
from pipelines.gold.patterns.waiting import waiting_for_one
from schemas.rows import PatternOfGroup

GROUP_FINDERS: tuple[Callable[[GroupFacts], Iterable[GroupFinding]], ...] = (
    rejoin_loop,
    waiting_for_one,
    topic_without_owner,
    group_id_shared,
    connect_delay,
    never_closed,
    instance_id_used_twice,
    instance_id_not_kept,
    poll_timeouts,
    migration_incomplete,
    registry_without_leader,
)
"""Every pattern that the silver rows of one group show. The other patterns concern several groups or need polls."""


def pattern_rows(silver: Silver, start_ms: int, known: Context | None = None) -> list[PatternOfGroup]:
    """Return a row for each pattern and subject, with `as_of` as in the diagnoses of the same window.

    `silver` is one window of one group, as `window` returns it. Patterns that were over before `start_ms` (in
    milliseconds) are left out. The list is empty if no rebalance completed since then. `known` is the context of
    `silver`, if it was made already.
    """
    facts = GroupFacts(silver=silver, start_ms=start_ms, known=known or context(silver))
    if not any(g["joined_at"] >= start_ms and g["completed_at"] is not None for g in facts.generations):
        return []
    found = [each for finder in GROUP_FINDERS for each in finder(facts) if each.last_at >= start_ms]
    newest = {(each.pattern, each.subject): each for each in sorted(found, key=lambda each: each.last_at)}
    ranked = sorted(newest.values(), key=lambda each: (each.ended_at is not None, each.started_at, each.pattern))
    return [_row(each, facts.as_of) for each in ranked]


def _row(found: GroupFinding, as_of: int) -> PatternOfGroup:
    return {
        "as_of": as_of,
        "pattern": found.pattern.value,
        "subject": found.subject,
        "started_at": found.started_at,
        "last_at": found.last_at,
        "ended_at": found.ended_at,
        "times": found.times,
        "instances": list(found.instances),
        "sources": list(found.sources),
        "evidence": found.evidence.value,
        "explanation": found.explanation,
        "action": found.action,
    }
