"""Rows of `storms`: the cost of a storm, its causes and the attributes of the affected, in numbers and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.gold.marks_nearby import before, groups_of, is_about
from pipelines.gold.storms.differences import Difference
from pipelines.gold.storms.storm_causes import DiagnosedRebalance, spread, suspected
from pipelines.gold.storms.storm_cost import Cost
from pipelines.gold.storms.storms import Storm, number_of
from schemas.rows import CauseRow, DifferenceRow, MarkRow, StormRow, VerdictSumRow
from schemas.states import Evidence, StormScope
from schemas.thresholds import MINUTE_MS
from schemas.written import amount, count, percent

SHOWN = 3
NORMAL = "; normal"
GRADES = (Evidence.INFERRED, Evidence.BOUNDED, Evidence.OBSERVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StormFacts:
    """Facts about a storm from silver: its cost, the causes of its rebalances in order, the attributes in which the
    affected differ from the others, the sums of its rebalances by verdict, greatest loss first, and the changes of its
    members' pods in words, in order of time.
    """

    cost: Cost
    diagnosed: Sequence[DiagnosedRebalance]
    differences: Sequence[Difference]
    verdicts: Sequence[VerdictSumRow] = ()
    pod_changes: Sequence[str] = ()


def storm_row(storm: Storm, until_ms: int, facts: StormFacts, marks: Sequence[MarkRow]) -> StormRow:
    """Return the row of a storm. `until_ms` is the end of the cluster's history; `marks` are rows of that table."""
    is_open = storm.is_open(until_ms)
    cause, score = suspected(storm, facts.diagnosed)
    cost = facts.cost
    _, low, high = cost.interval
    return {
        "cluster": storm.cluster,
        "storm_id": storm.storm_id,
        "scope": storm.scope,
        "started_at": storm.started_at,
        "detected_at": storm.detected_at,
        "ended_at": None if is_open else storm.last_at,
        "is_open": is_open,
        "groups": len(storm.group_ids),
        "group_ids": [group.group_id for group in cost.groups],
        "rebalances": cost.rebalances,
        "unexplained_rebalances": number_of(storm.disturbances),
        "lost_resource_seconds_min": cost.lost_min,
        "lost_resource_seconds": cost.lost,
        "lost_resource_seconds_max": cost.lost_max,
        "lost_resource_seconds_low": low,
        "lost_resource_seconds_high": high,
        "suspected_cause": cause,
        "score": score,
        "causes": [CauseRow(cause=s.cause, rebalances=s.rebalances, groups=s.groups) for s in spread(facts.diagnosed)],
        "by_group": [group.row() for group in cost.groups],
        "differences": [_difference_row(d) for d in facts.differences],
        "evidence": next(grade for grade in GRADES if grade in {s.evidence for s in storm.disturbances}),
        "explanation": " ".join(_sentences(storm, facts, marks)),
        "verdict": facts.verdicts[0]["verdict"] if facts.verdicts else None,
        "verdicts": list(facts.verdicts),
    }


def is_described(storm: Storm, row: StormRow, marks: Sequence[MarkRow]) -> bool:
    """Return whether a stored row still describes the storm, if nothing changed in its groups."""
    return (
        row["unexplained_rebalances"] == number_of(storm.disturbances)
        and row["detected_at"] == storm.detected_at
        and set(row["group_ids"]) == storm.group_ids
        # Marks about unaffected groups count too, because the affected are compared with those groups.
        and not any(groups_of(m) for m in before(storm.started_at, marks))
        and all(repr(m["text"]) in row["explanation"] for m in suspects(storm, marks)[:SHOWN])
    )


def described_again(storm: Storm, row: StormRow, until_ms: int) -> StormRow:
    """Return the stored row with its end updated."""
    is_open = storm.is_open(until_ms)
    return {**row, "is_open": is_open, "ended_at": None if is_open else storm.last_at}


def _difference_row(found: Difference) -> DifferenceRow:
    return {
        "attribute": found.attribute,
        "value": found.value,
        "share": found.share,
        "baseline": found.baseline,
        "lift": found.lift,
    }


def _sentences(storm: Storm, facts: StormFacts, marks: Sequence[MarkRow]) -> list[str]:
    cost, found = facts.cost, facts.differences
    out = [_happened(storm), *_causes(storm, facts)]
    if cost.unstable >= 0.005:
        whose = "The group was" if storm.scope == StormScope.GROUP else "On average, its groups were"
        out.append(f"{whose} rebalancing {percent(cost.unstable)} of the time.")
    out += [
        f"It began {_minutes(m['marked_at'], storm.started_at):.0f} min after the mark {m['text']!r} ({m['kind']})."
        for m in suspects(storm, marks)[:SHOWN]
    ]
    if facts.pod_changes:
        further = len(facts.pod_changes) - SHOWN
        more = f" and {further:,} more" if further > 0 else ""
        listed = ", ".join(repr(text) for text in facts.pod_changes[:SHOWN])
        out.append(f"Kubernetes reported shortly before its members were gone: {listed}{more}.")
    if found:
        out += [
            f"{d.attribute} {d.value}: {percent(d.share)} of the affected, {percent(d.baseline)} of the others."
            for d in found[:SHOWN]
        ]
    else:
        out.append("No recorded attribute distinguishes the affected from the others.")
    return out


def _happened(storm: Storm) -> str:
    count, minutes = number_of(storm.disturbances), max(1, round((storm.last_at - storm.started_at) / MINUTE_MS))
    if storm.scope == StormScope.FLEET:
        return (
            f"{len(storm.group_ids)} groups were disturbed, with {count:,} rebalances within {minutes} min. At least "
            f"{storm.needed} of the groups were disturbed within {storm.window_ms // 1000} s, which is not chance at "
            f"the usual {amount(storm.expected_per_day)} groups a day."
        )
    return (
        f"{count:,} rebalances within {minutes} min are not explained by a deploy, scaling or follow-up. At the "
        f"group's usual rate of {amount(storm.expected_per_day)} a day, {storm.needed} within "
        f"{storm.window_ms // MINUTE_MS} min count as a storm."
    )


def _causes(storm: Storm, facts: StormFacts) -> list[str]:
    """Return sentences on the suspected cause and all causes, from the diagnoses of the storm's rebalances."""
    cause, score = suspected(storm, facts.diagnosed)
    if cause is None:
        return ["None of its rebalances completed, so none has a diagnosis."]
    judged = len({each.group_id for each in facts.diagnosed})
    of = f" in {judged:,} of its {len(storm.group_ids):,} groups" if storm.scope == StormScope.FLEET else ""
    parts = [
        f"{each.cause.says.removesuffix(NORMAL)}: {count(each.rebalances, 'rebalance')}"
        + (f" of {count(each.groups, 'group')}" if storm.scope == StormScope.FLEET else "")
        for each in spread(facts.diagnosed)[:SHOWN]
    ]
    counted = "groups" if storm.scope == StormScope.FLEET else "rebalances"
    suspicion = f"{cause.says.removesuffix(NORMAL)} ({percent(score)} of these {counted}{_most_often(storm)})"
    number = count(sum(each.rebalances for each in facts.diagnosed), "rebalance")
    out = [f"Suspected cause, from the diagnoses of {number}{of}: {suspicion}."]
    return out if len(parts) == 1 else [*out, f"Causes: {'; '.join(parts)}."]


def _minutes(start: int, end: int) -> float:
    return (end - start) / MINUTE_MS


def _most_often(storm: Storm) -> str:
    counts = Counter(s.started_by for s in storm.disturbances if s.started_by)
    if storm.scope == StormScope.FLEET or not counts:
        return ""
    starter = min(counts, key=lambda name: (-counts[name], name))
    return f", {counts[starter]} times started by {starter}" if counts[starter] > 1 else ""


def suspects(storm: Storm, marks: Sequence[MarkRow]) -> list[MarkRow]:
    """Return the marks of the cluster, or of an affected group, shortly before the storm; the nearest first."""
    return before(storm.started_at, [m for m in marks if is_about(m, storm.group_ids)])
