"""Applications that make up a new group id at each start: many groups of one prefix, each with one short life.

Their old groups stay in the cluster until their offsets expire, no start continues where the one before ended, and the
history of the application is spread over all of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from pipelines.gold.patterns.cluster_findings import ClusterFacts, ClusterFinding, named
from pipelines.gold.wording import shortened
from schemas.rows import GroupRow
from schemas.states import Evidence, GroupState, Pattern
from schemas.thresholds import HOUR_MS, MINUTE_MS
from schemas.written import count, duration, instant

FEWEST = 5
"""Minimum number of groups with one prefix."""

FEWEST_STARTS = 4
"""Minimum number of different times at which these began."""

OVER = 0.6
"""Minimum share of these groups that are over."""

SILENT_MS = HOUR_MS
"""Time without a record after which a group without a known end counts as over."""

TOGETHER_MS = MINUTE_MS
"""Groups that begin within this time belong to one start of an application with several instances."""

MADE_UP = re.compile(
    r"(?:^|[-_.:])(?:"
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"  # a UUID
    r"|\d{1,4}(?:[-_.:T]\d{1,6}){1,5}(?:\.\d{1,9})?Z?"  # a date, with or without a time
    r"|\d{1,20}"  # a number, a timestamp, a process id
    r"|(?=[a-z]{0,40}\d)[0-9a-z]{5,64}"  # a hash, or random letters and digits
    r")$"
)
"""The part of a group id that is new at each start."""


def new_groups_per_start(facts: ClusterFacts) -> list[ClusterFinding]:
    """Return the prefixes of which a new group appears at each start. Groups from before the window do not count."""
    begun = min((g["first_seen_at"] for g in facts.groups if g["first_seen_at"] is not None), default=0)
    by_prefix: dict[str, list[GroupRow]] = defaultdict(list)
    for group in facts.groups:
        first = group["first_seen_at"]
        # What existed when reading began may be much older than it seems.
        if first is None or first <= max(begun + TOGETHER_MS, facts.since_ms):
            continue
        if (prefix := prefix_of(group["group_id"])) is not None and group["incarnation"] == 0:
            by_prefix[prefix].append(group)
    return [_finding(facts, prefix, groups) for prefix, groups in sorted(by_prefix.items()) if _is_one(facts, groups)]


def prefix_of(group_id: str) -> str | None:
    """Return the group id without its made-up end; None if it has none.

    >>> prefix_of("orders-1763982001123"), prefix_of("orders-6f1c0e1e-2f0a-4b7e-9d57-0c8b0d1f4a11"), prefix_of("orders")
    ('orders', 'orders', None)
    """
    kept = group_id
    while found := MADE_UP.search(kept):
        kept = kept[: found.start()]
    return None if kept == group_id else kept


def _is_one(facts: ClusterFacts, groups: Sequence[GroupRow]) -> bool:
    over = sum(_is_over(facts, group) for group in groups)
    return (
        len(groups) >= FEWEST
        and over >= OVER * len(groups)
        and _starts(group["first_seen_at"] or 0 for group in groups) >= FEWEST_STARTS
    )


def _is_over(facts: ClusterFacts, group: GroupRow) -> bool:
    last = group["last_record_at"] or 0
    has_no_members = group["is_deleted"] or group["state"] in (GroupState.EMPTY, GroupState.DEAD)
    is_silent = facts.until_ms - last > SILENT_MS
    return is_silent or (has_no_members and bool(group["generation_id"]))


def _starts(times: Iterable[int]) -> int:
    starts, last = 0, None
    for at in sorted(times):
        if last is None or at - last > TOGETHER_MS:
            starts += 1
        last = at
    return starts


def _finding(facts: ClusterFacts, prefix: str, groups: Sequence[GroupRow]) -> ClusterFinding:
    names = sorted(group["group_id"] for group in groups)
    first = [group["first_seen_at"] or 0 for group in groups]
    lengths = sorted((group["last_record_at"] or at) - at for group, at in zip(groups, first, strict=True))
    over = sum(_is_over(facts, group) for group in groups)
    starts = _starts(first)
    newest = max(groups, key=lambda group: (group["first_seen_at"] or 0, group["group_id"]))["group_id"]
    begin = f"begin with {shortened(prefix)}" if prefix else "are a generated id only"
    is_tool = prefix == "console-consumer"
    tool = " Kafka's console consumer does this if it is started without --group." if is_tool else ""
    return ClusterFinding(
        pattern=Pattern.NEW_GROUP_PER_START,
        subject=prefix,
        started_at=min(first),
        last_at=max(first),
        ended_at=None if over < len(groups) else max(group["last_record_at"] or 0 for group in groups),
        times=starts,
        group_ids=names,
        sources=["topic"],
        evidence=Evidence.INFERRED,
        explanation=(
            f"{count(len(groups), 'group')} {begin} "
            f"and began at {count(starts, 'different time')} between {instant(min(first))} and {instant(max(first))}; "
            f"{over} of them are over and lasted {duration(lengths[len(lengths) // 2])} (median). The "
            f"newest is {shortened(newest)}. So no start continues at the offsets of the one before: it reads from "
            f"auto.offset.reset.{tool} Examples: {named(names, 'group')}."
        ),
        action=(
            "Give the application one fixed group.id, unless each start is meant to read everything. Delete the old "
            "groups (kafka-consumer-groups.sh --delete), or wait until their offsets expire."
        ),
    )
