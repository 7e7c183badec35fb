"""Rows of `storms`: what a storm cost, what is behind it and how those hit differ, in figures and in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pipelines.gold.announced import before
from pipelines.gold.storms.differences import Difference
from pipelines.gold.storms.shakes import MINUTE_MS, Shake
from pipelines.gold.storms.storm_cost import Cost
from pipelines.gold.storms.storms import Storm
from schemas.states import DiagnosisCause, Evidence, StormScope

Row = Mapping[str, Any]
SHOWN = 3
WORDS = {
    DiagnosisCause.POLL_TIMEOUT: "a poll took longer than max.poll.interval.ms",
    DiagnosisCause.SESSION_EXPIRY: "a session expired without a restart",
    DiagnosisCause.CRASH_LOOP: "an instance went more often than a deploy restarts it",
    DiagnosisCause.SLOW_JOINER: "a member did not join or sync in time, or the rebalance failed",
    DiagnosisCause.LEADER_FLAPPING: "the leader joined anew",
    DiagnosisCause.FOLLOW_UPS: "follow-up after follow-up without a change of members",
    DiagnosisCause.COORDINATOR: "another broker had just become coordinator, or could not store the assignment",
    DiagnosisCause.TOPIC_CHANGES: "topics or partitions changed",
    DiagnosisCause.UNKNOWN: "the same members joined anew without a stated reason",
}
GRADES = (Evidence.INFERRED, Evidence.BOUNDED, Evidence.OBSERVED)


def storm_row(
    storm: Storm, until_ms: int, cost: Cost, found: Sequence[Difference], marks: Sequence[Row]
) -> dict[str, Any]:
    """One row; `until_ms` is how far the cluster's history reaches, `marks` are rows of that table."""
    is_open = storm.is_open(until_ms)
    cause, score = suspected(storm)
    hardest = Counter(s.group_id for s in storm.shakes)
    return {
        "cluster": storm.cluster,
        "storm_id": storm.storm_id,
        "scope": storm.scope,
        "started_at": storm.started_at,
        "detected_at": storm.detected_at,
        "ended_at": None if is_open else storm.last_at,
        "is_open": is_open,
        "groups": len(storm.group_ids),
        "group_ids": sorted(storm.group_ids, key=lambda g: (-hardest[g], g)),
        "rebalances": cost.rebalances,
        "unexplained_rebalances": len(storm.shakes),
        "lost_resource_seconds_min": cost.lost_min,
        "lost_resource_seconds": cost.lost,
        "lost_resource_seconds_max": cost.lost_max,
        "suspected_cause": cause,
        "score": score,
        "differences": [_told(d) for d in found],
        "evidence": next(grade for grade in GRADES if grade in {s.evidence for s in storm.shakes}),
        "explanation": " ".join(_sentences(storm, cost, cause, score, found, marks)),
    }


def is_told(storm: Storm, row: Row, marks: Sequence[Row]) -> bool:
    """Whether a stored row is about the storm as it is now, provided that nothing changed in its groups."""
    return (
        row["unexplained_rebalances"] == len(storm.shakes)
        and row["detected_at"] == storm.detected_at
        and set(row["group_ids"]) == storm.group_ids
        # Of the groups that are not hit as well: what is announced of them says how those hit differ.
        and not any(m["group_id"] for m in before(storm.started_at, marks))
        and all(repr(m["text"]) in row["explanation"] for m in suspects(storm, marks)[:SHOWN])
    )


def told_again(storm: Storm, row: Row, until_ms: int) -> dict[str, Any]:
    """The stored row, as time has gone on."""
    is_open = storm.is_open(until_ms)
    return {**row, "is_open": is_open, "ended_at": None if is_open else storm.last_at}


def suspected(storm: Storm) -> tuple[DiagnosisCause, float]:
    """The cause of most shakes, and its share; in a fleet storm each group has one voice: how it began."""
    voices = storm.shakes
    if storm.scope == StormScope.FLEET:
        first: dict[str, Shake] = {}
        for shake in storm.shakes:
            first.setdefault(shake.group_id, shake)
        voices = list(first.values())
    counts = Counter(s.cause for s in voices)
    cause = min(counts, key=lambda c: (-counts[c], c))
    return cause, counts[cause] / len(voices)


def _told(found: Difference) -> dict[str, Any]:
    row = asdict(found)
    row.pop("probability")
    return row


def _sentences(
    storm: Storm, cost: Cost, cause: DiagnosisCause, score: float, found: Sequence[Difference], marks: Sequence[Row]
) -> list[str]:
    out = [_what(storm), f"{score:.0%}: {WORDS[cause]}{_most_often(storm)}."]
    if cost.unstable >= 0.005:
        whose = "the group" if storm.scope == StormScope.GROUP else "its groups, on average,"
        out.append(f"A rebalance of {whose} was under way {cost.unstable:.0%} of the time.")
    out += [
        f"It began {_minutes(m['marked_at'], storm.started_at):.0f} min after the mark {m['text']!r} ({m['kind']})."
        for m in suspects(storm, marks)[:SHOWN]
    ]
    if found:
        out += [
            f"{d.attribute} {d.value}: {d.share:.0%} of those hit, {d.baseline:.0%} of the rest." for d in found[:SHOWN]
        ]
    else:
        out.append("Nothing that is recorded tells those hit from the rest.")
    return out


def _what(storm: Storm) -> str:
    count, minutes = len(storm.shakes), max(1, round((storm.last_at - storm.started_at) / MINUTE_MS))
    if storm.scope == StormScope.FLEET:
        return (
            f"{len(storm.group_ids)} groups were shaken, {storm.needed} or more of them within "
            f"{storm.window_ms // 1000} s, which chance does not bring together at the usual "
            f"{storm.expected_per_day:.1f} groups a day; {count} rebalances within {minutes} min."
        )
    return (
        f"{count} rebalances within {minutes} min that no deploy, scaling or follow-up explains; at the group's usual "
        f"{storm.expected_per_day:.1f} a day {storm.needed} within {storm.window_ms // MINUTE_MS} min are a storm."
    )


def _minutes(start: int, end: int) -> float:
    return (end - start) / MINUTE_MS


def _most_often(storm: Storm) -> str:
    counts = Counter(s.who for s in storm.shakes if s.who)
    if storm.scope == StormScope.FLEET or not counts:
        return ""
    who = min(counts, key=lambda name: (-counts[name], name))
    return f", {counts[who]} times of {who}" if counts[who] > 1 else ""


def suspects(storm: Storm, marks: Sequence[Row]) -> list[Row]:
    """Marks of the cluster, or of a group hit, shortly before the storm; the nearest first."""
    return before(storm.started_at, [m for m in marks if m["group_id"] in (None, *storm.group_ids)])
