"""Fleet storms: more groups than chance explains have their first disturbance within the same minute."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Sequence

from pipelines.gold.storms.disturbances import WINDOW_MS, Disturbance
from pipelines.gold.storms.poisson import least_events
from pipelines.gold.storms.storms import CALM_MS, Storm
from schemas.states import StormScope
from schemas.thresholds import DAY_MS, HOUR_MS, MINUTE_MS

LEAST = 3
TOGETHER_MS = MINUTE_MS
BASELINE_MS = DAY_MS
SPARED_HOURS = 2
ODDS_PER_DAY = 1 / 200
"""False alarms that chance may cause in a cluster: one in two hundred days."""

USUAL_PER_GROUP = 0.1
"""Assumed usual onsets of one group a day without history; weighted like one hour of history."""


def cluster_storms(
    cluster: str, disturbances: Iterable[Disturbance], first_seen_at: Iterable[int], *, since_ms: int = 0
) -> list[Storm]:
    """Return the storms of several groups that begin at `since_ms` or later, in order. Times are in milliseconds.

    Args:
        cluster: name of the cluster.
        disturbances: disturbances of all groups, from a day before `since_ms` on.
        first_seen_at: start of the history of each group, including groups without disturbances.
        since_ms: a time at which the fleet has no storm.
    """
    ordered = sorted(disturbances, key=_time)
    onsets = _onsets(ordered)
    times = [s.at for s in onsets]
    moved = [s.at for s in onsets if s.is_coordinator]
    seen = sorted(first_seen_at)
    out: list[Storm] = []
    free, last_onset = 0, 0
    for at, disturbance in enumerate(onsets):
        while times[free] <= disturbance.at - TOGETHER_MS:
            free += 1
        together = onsets[free : at + 1]
        if len(together) < LEAST or together[0].at < since_ms:
            continue
        usual, enough = _enough(times, seen, disturbance.at)
        if len(together) < enough:
            # If the log shows a new coordinator, compare only with the usual number of failovers.
            usual, enough = _enough(moved, seen, disturbance.at)
            if sum(s.is_coordinator for s in together) < enough:
                continue
        if out and _goes_on(out[-1], last_onset, together[0].at, ordered):
            out[-1].group_ids |= {s.group_id for s in together}
        else:
            out.append(_storm(cluster, together, enough, usual))
        last_onset = disturbance.at
    if out:
        _follow(out[-1], ordered)
    return out


def _enough(times: Sequence[int], seen: Sequence[int], at: int) -> tuple[float, int]:
    usual = _per_day(times, seen, at - TOGETHER_MS)
    return usual, least_events(usual, TOGETHER_MS, least=LEAST, odds_per_day=ODDS_PER_DAY)


def _goes_on(storm: Storm, last_onset: int, at: int, ordered: Sequence[Disturbance]) -> bool:
    if at - last_onset <= CALM_MS:
        return True
    _follow(storm, ordered)
    return at - storm.last_at <= CALM_MS


def _storm(cluster: str, together: Sequence[Disturbance], enough: int, usual: float) -> Storm:
    known = max(s.known_at for s in together)
    return Storm(
        cluster=cluster,
        scope=StormScope.FLEET,
        disturbances=list(together),
        detected_at=known,
        last_at=known,
        needed=enough,
        window_ms=TOGETHER_MS,
        expected_per_day=usual,
        group_ids={s.group_id for s in together},
        first_group=together[0].group_id,
    )


def _follow(storm: Storm, ordered: Sequence[Disturbance]) -> None:
    """Set the storm's disturbances to all of its groups, as long as at least three groups are disturbed in a window."""
    start = storm.started_at
    storm.disturbances = []
    lately: deque[Disturbance] = deque()
    disturbed: Counter[str] = Counter()
    for disturbance in ordered[bisect_left(ordered, start, key=lambda s: s.at) :]:
        if disturbance.group_id not in storm.group_ids:
            continue
        lately.append(disturbance)
        disturbed[disturbance.group_id] += 1
        while lately[0].at <= disturbance.at - WINDOW_MS:
            calmer = lately.popleft().group_id
            disturbed[calmer] -= 1
            if not disturbed[calmer]:
                del disturbed[calmer]
        if disturbance.at - start >= WINDOW_MS and len(disturbed) < LEAST:
            break
        storm.add([disturbance])


def _onsets(ordered: Sequence[Disturbance]) -> list[Disturbance]:
    """Return the first disturbances of groups that were calm before. A group that is always disturbed has no onset."""
    last: dict[str, int] = {}
    out = []
    for disturbance in ordered:
        if disturbance.at - last.get(disturbance.group_id, disturbance.at - WINDOW_MS) >= WINDOW_MS:
            out.append(disturbance)
        last[disturbance.group_id] = disturbance.at
    return out


def _per_day(times: Sequence[int], seen: Sequence[int], before: int) -> float:
    """Return the usual onsets a day of the whole cluster.

    The two hours with most onsets are left out, so that one storm does not hide the next.
    """
    since = max(seen[0] if seen else 0, before - BASELINE_MS)
    mine = times[bisect_left(times, since) : bisect_left(times, before)]
    count, length = len(mine), max(0, before - since)
    if length >= BASELINE_MS // 2:
        busiest = Counter((at - since) // HOUR_MS for at in mine).most_common(SPARED_HOURS)
        count, length = count - sum(n for _, n in busiest), length - SPARED_HOURS * HOUR_MS
    usual = bisect_left(seen, before) * USUAL_PER_GROUP
    return (count + usual * HOUR_MS / DAY_MS) / ((length + HOUR_MS) / DAY_MS)


def _time(disturbance: Disturbance) -> tuple[int, int, str, int, str]:
    return (
        disturbance.at,
        disturbance.known_at,
        disturbance.group_id,
        disturbance.generation_id or -1,
        disturbance.started_by,
    )
