"""Members that own a partition and do not work: records arrive, and the commits that used to come have stopped.

Only polls show that records arrive. A group that commits nothing to Kafka, or only once in a while, shows nothing: its
commits must have come at least `FEWEST` times in the last day, five times as often as the silence is long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipelines.gold.patterns.cluster_findings import ClusterFacts, ClusterFinding, OwnedPartition, named
from pipelines.gold.wording import shortened
from schemas.states import Evidence, Pattern
from schemas.thresholds import MINUTE_MS
from schemas.written import count, duration, instant

SILENT_MS = 30 * MINUTE_MS
"""Minimum time without a commit, in which the partition has its owner and polls show new records."""

FEWEST = 5
"""Minimum number of commits of the partition in the last day."""

USUAL = 5
"""The silence is at least this many times as long as the usual time between two commits."""

ARRIVED = 3
"""Minimum number of records that nobody has committed. Markers of transactions count as records."""


def owners_not_working(facts: ClusterFacts) -> list[ClusterFinding]:
    """Return the groups with owners that do not work, each with its partitions."""
    by_group: dict[str, list[OwnedPartition]] = defaultdict(list)
    for owned in facts.owned:
        if _is_idle(owned):
            by_group[owned.group_id].append(owned)
    return [_finding(group, idle) for group, idle in sorted(by_group.items())]


def _is_idle(owned: OwnedPartition) -> bool:
    begin = max(owned.last_ms, owned.since_ms)
    later = [(at, end) for at, end in owned.ends if at >= begin]
    if len(later) < 2 or owned.commits < FEWEST:
        return False
    (_, first), (at, last) = later[0], later[-1]
    usual = (owned.last_ms - owned.first_ms) / (owned.commits - 1)
    return at - begin >= max(SILENT_MS, USUAL * usual) and last > first and last - owned.committed >= ARRIVED


def _finding(group: str, idle: Sequence[OwnedPartition]) -> ClusterFinding:
    began, last = min(o.last_ms for o in idle), max(o.ends[-1][0] for o in idle)
    waiting = sum(o.ends[-1][1] - o.committed for o in idle)
    owners = list(dict.fromkeys(f"{shortened(o.client_id)} at {shortened(o.client_host)}" for o in idle))
    partitions = [f"{o.topic}-{o.partition}" for o in idle]
    return ClusterFinding(
        pattern=Pattern.OWNER_NOT_WORKING,
        subject=group,
        started_at=began,
        last_at=last,
        ended_at=None,
        times=len(idle),
        group_ids=[group],
        instances=list(dict.fromkeys([*(o.client_id for o in idle), *(o.client_host for o in idle)])),
        sources=["poll", "topic"],
        evidence=Evidence.INFERRED,
        explanation=(
            f"{count(len(idle), 'partition')} of {shortened(group)} ({named(partitions, 'partition')}) "
            f"{_have(len(idle))} an owner ({named(owners, 'member')}), but no commit since {instant(began)}, "
            f"for {duration(last - began)}. "
            f"Polls show that records arrive: {waiting:,} wait."
        ),
        action=(
            "Look at the owners: a thread that hangs in a handler while heartbeats go on, a consumer that is paused, "
            "or one that ignores an error. Take a thread dump, then restart the member."
        ),
    )


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
