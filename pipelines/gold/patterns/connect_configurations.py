"""Connect clusters whose leader assigns nothing, because it has not read the newest configuration (`CONFIG_MISMATCH`).

Each worker sends the offset up to which it has read the configuration topic. If the leader cannot reach the highest of
them, it sends the error 1 instead of work (`EagerAssignor`, `IncrementalCooperativeAssignor`), and every worker rejoins
at once. Once is normal: a configuration arrived during the rebalance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipelines.gold.patterns.cluster_findings import ClusterFacts, ClusterFinding, Row, named
from pipelines.gold.wording import shortened
from schemas.rows import GroupEventRow
from schemas.states import Evidence, Pattern
from schemas.thresholds import MINUTE_MS
from schemas.written import count, duration, instant

FEWEST = 3
"""Minimum number of generations in a row in which nothing was assigned."""

APART_MS = 10 * MINUTE_MS
"""Generations without an assignment that are further apart are different incidents."""


def connect_config_mismatches(facts: ClusterFacts) -> list[ClusterFinding]:
    """Return the times during which a Connect cluster was assigned nothing, one for each series of generations."""
    by_group: dict[str, list[GroupEventRow]] = defaultdict(list)
    for event in facts.refusals:
        by_group[event["group_id"]].append(event)
    found = []
    for group, events in sorted(by_group.items()):
        found += [
            _finding(facts, group, series)
            for series in _series(facts, group, sorted(events, key=lambda e: e["event_at"]))
            if len(series) >= FEWEST
        ]
    return found


def _series(facts: ClusterFacts, group: str, events: Sequence[GroupEventRow]) -> list[list[GroupEventRow]]:
    """Return the events in series: a generation that assigned something ends a series."""
    out: list[list[GroupEventRow]] = []
    for event in events:
        at = event["event_at"]
        last = out[-1][-1]["event_at"] if out else None
        if last is None or at - last > APART_MS or _assigned_after(facts, group, last, at) is not None:
            out.append([])
        out[-1].append(event)
    return out


def _assigned_after(facts: ClusterFacts, group: str, after: int, before: int) -> int | None:
    rounds = facts.assigned.get(group, ())
    return next((at for at in rounds if after < at < before), None)


def _finding(facts: ClusterFacts, group: str, series: Sequence[GroupEventRow]) -> ClusterFinding:
    began, last = series[0]["event_at"], series[-1]["event_at"]
    ended = _assigned_after(facts, group, last, facts.until_ms + 1)
    workers = facts.config_offsets.get(group, ())
    how_long = f"since {instant(began)}" if ended is None else f"for {duration(ended - began)} from {instant(began)}"
    behind = _behind(workers)
    return ClusterFinding(
        pattern=Pattern.CONNECT_CONFIG_MISMATCH,
        subject=group,
        started_at=began,
        last_at=last if ended is None else ended,
        ended_at=ended,
        times=len(series),
        group_ids=[group],
        instances=[worker["client_id"] for worker in behind],
        sources=["topic"],
        evidence=Evidence.OBSERVED,
        explanation=(
            f"In {count(len(series), 'generation')} {how_long}, the leader of {shortened(group)} sent the error "
            f"CONFIG_MISMATCH instead of work. {_offsets(workers, behind)} Connectors and tasks that were unassigned "
            "stayed so; under the eager protocol, none ran at all."
        ),
        action=(
            "Look at the leader's log for errors on the configuration topic (config.storage.topic): every worker must "
            "use the same topic with one partition and cleanup.policy=compact, and be allowed to read it. Restart the "
            "worker that is behind, the leader first."
        ),
    )


def _behind(workers: Sequence[Row]) -> list[Row]:
    """Return the workers that have not read the newest configuration, the leader first."""
    newest = max((w["config_offset"] for w in workers), default=0)
    return sorted(
        (w for w in workers if w["config_offset"] < newest), key=lambda w: (not w["is_leader"], w["client_id"])
    )


def _offsets(workers: Sequence[Row], behind: Sequence[Row]) -> str:
    if not workers:
        return "Which worker is behind is not known."
    newest = max(w["config_offset"] for w in workers)
    if not behind:
        return f"All workers have read the configuration up to offset {newest}, so the leader could not read beyond it."
    names = [f"{w['client_id']}{' (the leader)' if w['is_leader'] else ''} up to {w['config_offset']}" for w in behind]
    return f"The newest configuration is at offset {newest}; read so far: {named(names, 'worker')}."
