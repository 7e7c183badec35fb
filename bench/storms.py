"""Share of storms found, calm days with a false page, and detection delays: `python -m bench.storms [--quick]`.

Simulated silver rows of clusters with ordinary days, and of clusters that also have storms. The detection is the
product's own. This data was not used to fit thresholds, because thresholds follow from probabilities.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from bench.simulated_days import HOUR, MINUTE, START, STORMS, Cluster, Label
from pipelines.gold.storms.disturbances import Disturbance, disturbances
from pipelines.gold.storms.incremental import StormScan
from pipelines.gold.storms.storms import Storm
from schemas.rows import GenerationRow, GroupEventRow
from schemas.written import count

NEAR_MS = 5 * MINUTE


@dataclass(kw_only=True)
class Figures:
    """The results. `delays_ms` are by the event from which the delay counts."""

    storms: int = 0
    found: int = 0
    group_days: int = 0
    false: list[Storm] = field(default_factory=list)
    missed: list[Label] = field(default_factory=list)
    delays_ms: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0


def found_in(cluster: Cluster, figures: Figures) -> tuple[list[Storm], list[Disturbance]]:
    """Return the storms and disturbances that the product finds in a cluster."""
    found: list[Disturbance] = []
    seen: dict[str, int] = {}
    for group in cluster.groups:
        generations, events = group.rows()
        begun = time.process_time()
        found += disturbances(
            group.group_id, cast("list[GenerationRow]", generations), cast("list[GroupEventRow]", events)
        )
        figures.seconds += time.process_time() - begun
        seen[group.group_id] = START - HOUR
    begun = time.process_time()
    scan = StormScan(cluster=cluster.name, stored=[], since_ms=0, first_seen_at=seen)
    scan.find_cluster_storms(found)
    of_groups: dict[str, list[Disturbance]] = {group: [] for group in scan.groups(found)}
    for disturbance in found:
        if disturbance.group_id in of_groups:
            of_groups[disturbance.group_id].append(disturbance)
    storms = scan.storms(of_groups)
    figures.seconds += time.process_time() - begun
    return storms, found


def judge(cluster: Cluster, figures: Figures) -> None:
    """Count storms that were found, missed and wrongly reported."""
    storms, found = found_in(cluster, figures)
    figures.group_days += len(cluster.groups) * cluster.days
    matched: set[int] = set()
    for label in cluster.labels:
        mine = [s for s in storms if _is_about(s, label)]
        matched |= {id(s) for s in mine}
        figures.storms += 1
        if not mine:
            figures.missed.append(label)
            continue
        figures.found += 1
        first = min(mine, key=lambda s: s.detected_at)
        third = _third(found, label)
        figures.delays_ms["labelled beginning"].append(first.detected_at - label.started_at)
        if third is not None:
            figures.delays_ms["third shake, or group"].append(max(0, first.detected_at - third))
    figures.false += [s for s in storms if id(s) not in matched and s.started_at >= START]


def _is_about(storm: Storm, label: Label) -> bool:
    overlaps = storm.started_at <= label.ended_at + NEAR_MS and storm.last_at >= label.started_at - NEAR_MS
    return overlaps and bool(storm.group_ids & label.groups)


def _third(found: Iterable[Disturbance], label: Label) -> int | None:
    """Return when the third unexplained rebalance, or the third group, could be known."""
    mine = sorted(
        (s for s in found if s.group_id in label.groups and label.started_at <= s.at <= label.ended_at + NEAR_MS),
        key=lambda s: s.known_at,
    )
    if len(label.groups) > 1:
        first: dict[str, int] = {}
        for disturbance in mine:
            first.setdefault(disturbance.group_id, disturbance.known_at)
        times = sorted(first.values())
    else:
        times = [s.known_at for s in mine if not s.is_explained]
    return times[2] if len(times) > 2 else None


def measure(*, calm_days: int, storms: int, groups: int, days: int, seed: int = 1) -> Figures:
    """Judge at least `calm_days` calm group-days and `storms` storms, on clusters of `groups` for `days`."""
    figures = Figures()
    number = seed * 1000
    while figures.group_days < calm_days:
        number += 1
        cluster = Cluster(number, groups=groups, days=days)
        cluster.calm()
        judge(cluster, figures)
    kinds = list(STORMS)
    made = 0
    while made < storms:
        number += 1
        cluster = Cluster(number, groups=groups, days=days)
        cluster.calm()
        for place in range(days * 2):
            at = START + place * 12 * HOUR + cluster.rng.randrange(6 * HOUR)
            cluster.storm(kinds[made % len(kinds)], at)
            made += 1
        judge(cluster, figures)
    return figures


def quantile(values: Sequence[int], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    figures = measure(
        calm_days=10_500 // scale, storms=360 // scale, groups=60, days=7 if scale == 1 else 3, seed=arguments.seed
    )
    rate = 1000 * len(figures.false) / figures.group_days
    print(f"storms        {figures.storms:8,}  found {figures.found:,}, recall {figures.found / figures.storms:.2%}")
    print(f"group-days    {figures.group_days:8,}  false pages {len(figures.false)}, {rate:.2f} per 1,000 group-days")
    for since, values in figures.delays_ms.items():
        print(f"delay since {since}: p50 {quantile(values, 0.5):.1f} s, p95 {quantile(values, 0.95):.1f} s")
    print(f"processor     {figures.seconds:8.1f}  s, {1e6 * figures.seconds / figures.group_days:.0f} us a group-day")
    for label in figures.missed:
        print(f"missed: {label.kind} of {len(label.groups)} groups, {sorted(label.groups)[:3]}")
    for storm in figures.false:
        names = ", ".join(sorted({s.started_by for s in storm.disturbances})[:5])
        size = count(len(storm.disturbances), "disturbance")
        print(f"false: {storm.scope.value} of {sorted(storm.group_ids)[:5]}, {size}, {names}")


if __name__ == "__main__":
    main()
