"""Storms of one group: disturbances that are more frequent than the group's own history makes likely."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipelines.gold.storms.disturbances import WINDOW_MS, Disturbance
from pipelines.gold.storms.poisson import least_events
from schemas.states import StormScope
from schemas.thresholds import DAY_MS, HOUR_MS, STORM_CALM_MS

Span = tuple[int, int]
LEAST = 3
APART_MS = 10_000
CALM_MS = STORM_CALM_MS
"""A storm is over after this time without an unexplained disturbance."""

BASELINE_MS = 7 * DAY_MS
USUAL_PER_DAY = 1.0
"""Assumed usual rate of a group without history; it is weighted like one day of history."""

HABIT = 3
"""Bursts of the same strength within the baseline that make such bursts usual for the group."""


@dataclass(slots=True, kw_only=True)
class Storm:
    """A storm of one group or of the fleet. Timestamps are in milliseconds.

    `disturbances` are in order of time. `expected_per_day` is the usual number before the storm; `needed`
    is the least number within `window_ms` that counts as a storm.
    """

    cluster: str
    scope: StormScope
    disturbances: list[Disturbance]
    detected_at: int
    last_at: int
    needed: int
    window_ms: int
    expected_per_day: float
    group_ids: set[str] = field(default_factory=set)
    first_group: str = ""

    @property
    def started_at(self) -> int:
        return self.disturbances[0].at

    @property
    def storm_id(self) -> str:
        """An id that stays the same while the storm grows."""
        identity = f"{self.cluster}\n{self.scope}\n{self.started_at}\n{self.first_group}"
        return hashlib.sha256(identity.encode()).hexdigest()[:16]

    def add(self, disturbances: Iterable[Disturbance]) -> None:
        """Add disturbances, which must follow the existing ones in time."""
        for disturbance in disturbances:
            self.disturbances.append(disturbance)
            self.group_ids.add(disturbance.group_id)
            self.last_at = max(self.last_at, disturbance.known_at)

    def is_open(self, until_ms: int) -> bool:
        """Return whether the storm goes on at `until_ms`, the end of the cluster's history."""
        return until_ms - self.last_at <= CALM_MS


def group_storms(
    cluster: str,
    group_id: str,
    disturbances: Iterable[Disturbance],
    *,
    first_seen_at: int,
    since_ms: int = 0,
    fleet_spans: Sequence[Span] = (),
) -> list[Storm]:
    """Return the storms of a group that begin at `since_ms` or later, in order. Times are in milliseconds.

    Args:
        cluster: name of the cluster.
        group_id: the group.
        disturbances: disturbances of the group, from a week before `since_ms` on.
        first_seen_at: start of the group's history.
        since_ms: a time at which the group has no storm.
        fleet_spans: spans of fleet storms that include the group. Disturbances in these spans form no storm of its
            own.
    """
    ordered = sorted((s for s in disturbances if not s.is_explained), key=_time)
    occurrences = _occurrences(s for s in ordered if not any(start <= s.at <= end for start, end in fleet_spans))
    firsts = [occurrence[0] for occurrence in occurrences]
    usual_occurrences = [occurrence[0] for occurrence in _occurrences(ordered)]
    bursts = _bursts(usual_occurrences)
    out: list[Storm] = []
    free = 0
    for at, disturbance in enumerate(firsts):
        if out and disturbance.at - out[-1].last_at <= CALM_MS:
            out[-1].add(occurrences[at])
            free = at + 1
            continue
        while firsts[free].at <= disturbance.at - WINDOW_MS:
            free += 1
        recent = firsts[free : at + 1]
        if len(recent) < LEAST or recent[0].at < since_ms:
            continue
        usual = _per_day(usual_occurrences, recent[0].at, first_seen_at)
        enough = max(least_events(usual, WINDOW_MS, least=LEAST), _habit(bursts, recent[0].at) + 1)
        if len(recent) >= enough:
            storm = _storm(cluster, group_id, recent, enough, usual)
            storm.disturbances = []
            for occurrence in occurrences[free : at + 1]:
                storm.add(occurrence)
            out.append(storm)
            free = at + 1
    return out


def _occurrences(ordered: Iterable[Disturbance]) -> list[list[Disturbance]]:
    """Return disturbances grouped by bursts of ten seconds, each counted once, because one failure may remove several
    members in several rebalances.
    """
    out: list[list[Disturbance]] = []
    for disturbance in ordered:
        if out and disturbance.at - out[-1][0].at < APART_MS:
            out[-1].append(disturbance)
        else:
            out.append([disturbance])
    return out


def _storm(cluster: str, group_id: str, recent: list[Disturbance], enough: int, usual: float) -> Storm:
    known = max(s.known_at for s in recent)
    return Storm(
        cluster=cluster,
        scope=StormScope.GROUP,
        disturbances=recent,
        detected_at=known,
        last_at=known,
        needed=enough,
        window_ms=WINDOW_MS,
        expected_per_day=usual,
        group_ids={group_id},
        first_group=group_id,
    )


def number_of(disturbances: Iterable[Disturbance]) -> int:
    """Return the number of rebalances."""
    return sum(each.rebalances for each in disturbances)


def _time(disturbance: Disturbance) -> tuple[int, int, str]:
    return disturbance.at, disturbance.known_at, disturbance.group_id


def _per_day(ordered: Sequence[Disturbance], before: int, first_seen_at: int) -> float:
    """Return the usual number of hours a day with a disturbance. Counting hours limits the weight of a bad evening."""
    since = max(first_seen_at, before - BASELINE_MS)
    mine = ordered[bisect_left(ordered, since, key=lambda s: s.at) : bisect_left(ordered, before, key=lambda s: s.at)]
    hours = len({s.at // HOUR_MS for s in mine})
    return (hours + USUAL_PER_DAY) / (max(0, before - since) / DAY_MS + 1)


def _bursts(ordered: Sequence[Disturbance]) -> list[tuple[int, int]]:
    """Return (start, most disturbances within a window) of each run of disturbances without a calm window in it."""
    out: list[tuple[int, int]] = []
    free = 0
    for at, disturbance in enumerate(ordered):
        while ordered[free].at <= disturbance.at - WINDOW_MS:
            free += 1
        size = at + 1 - free
        if size == 1:
            out.append((disturbance.at, 1))
        else:
            out[-1] = (out[-1][0], max(size, out[-1][1]))
    return out


def _habit(bursts: Sequence[tuple[int, int]], before: int) -> int:
    """Return the size that at least `HABIT` bursts of the baseline reached, 0 if there are fewer bursts."""
    sizes = sorted((size for at, size in bursts if before - BASELINE_MS <= at < before), reverse=True)
    return sizes[HABIT - 1] if len(sizes) >= HABIT and sizes[HABIT - 1] >= LEAST else 0
