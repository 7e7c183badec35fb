"""What the product's detection finds of simulated storms: found, missed and false ones, and the delays."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from pipelines.gold.storms.disturbances import Disturbance, disturbances
from pipelines.gold.storms.incremental import StormScan
from pipelines.gold.storms.storms import Storm
from schemas.rows import GenerationRow, GroupEventRow
from testing.simulation.simulated_days import HOUR, MINUTE, START, STORMS, Cluster, Label

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
            figures.delays_ms["third disturbance, or group"].append(max(0, first.detected_at - third))
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
