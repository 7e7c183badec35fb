"""What a churn would cost under a policy: many replays, each with latencies drawn from the group's own."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from pipelines.gold.advice.classic_replay import ClassicReplay
from pipelines.gold.advice.consumer_replay import ConsumerReplay
from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.advice.replay import Outcome, Policy
from pipelines.gold.churn import Churn, Outage
from schemas.states import GroupEventKind

RUNS = 60
WORK = 60_000
"""Resources x outages x runs: beyond it fewer runs have to do."""

LARGEST_WORK = 200_000
"""Resources and instances x outages and arrivals of one replay. Some thousand members that all restart are more: a
replay takes time proportional to this product, not to the records that a client had to cause.
"""

FEWEST_RUNS = 12
ROUGH_RUNS = 3
TAIL = 0.05
RACE_MS = 1_000
"""Where processes of one instance overlap, either may another time be the first to reach the coordinator."""

MODEL_ERROR = 0.15
"""An interval is at least so wide to either side: what is not modelled (threads, networks) is not nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Resource-seconds. Each end of the interval is passed by one replay in twenty, of either set."""

    lost: float
    low: float
    high: float
    rebalances: int


def predict(churn: Churn, latencies: Latencies, policy: Policy, seed: str) -> Prediction:
    """Two sets of replays: the estimate takes every absence as long as it was, the interval draws its length from the
    group's absences of the same kind, since they will not repeat to the second, and its start from within its bounds.
    Same arguments, same answer.
    """
    runs = _runs(churn)
    exact = [_replay(churn, latencies, policy, _random(seed, run)) for run in range(runs)]
    drawn = []
    for run in range(runs):
        random = _random(seed, runs + run)
        drawn.append(_replay(_redrawn(churn, random), latencies, policy, random).lost_ms / 1000)
    lost = fmean(o.lost_ms for o in exact) / 1000
    sets = [sorted(o.lost_ms / 1000 for o in exact), sorted(drawn)]
    cut = int(runs * TAIL)
    return Prediction(
        lost=lost,
        low=min(*(each[cut] for each in sets), lost * (1 - MODEL_ERROR)),
        high=max(*(each[-1 - cut] for each in sets), lost * (1 + MODEL_ERROR)),
        rebalances=round(fmean(o.rebalances for o in exact)),
    )


def rough(churn: Churn, latencies: Latencies, policy: Policy, seed: str) -> float:
    """Resource-seconds lost, to choose between policies that differ by a number."""
    runs = (_replay(churn, latencies, policy, _random(seed, run)) for run in range(ROUGH_RUNS))
    return fmean(o.lost_ms for o in runs) / 1000


def is_replayable(churn: Churn) -> bool:
    """Return whether replays of this churn take a bounded time."""
    return _work(churn) <= LARGEST_WORK


def _runs(churn: Churn) -> int:
    return max(FEWEST_RUNS, min(RUNS, WORK // _work(churn)))


def _work(churn: Churn) -> int:
    return (len(churn.outages) + len(churn.arrivals) + 1) * (len(churn.resources) + len(churn.instances) + 1)


def _random(seed: str, run: int) -> Random:
    return Random(int.from_bytes(hashlib.sha256(f"{seed}/{run}".encode()).digest()[:8]))  # noqa: S311 - a replay


def _replay(churn: Churn, latencies: Latencies, policy: Policy, random: Random) -> Outcome:
    kind = ConsumerReplay if policy.is_consumer_protocol else ClassicReplay
    return kind(churn, latencies, policy, random).run()


def _overlaps(outage: Outage) -> bool:
    """The next process asked to join before the one before had left: it is started without waiting for that."""
    return outage.how == GroupEventKind.LEFT and outage.back_at is not None and outage.back_at < outage.gone_at


def _redrawn(churn: Churn, random: Random) -> Churn:
    lengths: dict[GroupEventKind, list[int]] = defaultdict(list)
    following: dict[Outage, int] = {}
    last: dict[int, Outage] = {}
    for outage in sorted(churn.outages, key=lambda o: o.stopped_at):
        if outage.back_at is not None:
            lengths[outage.how].append(outage.back_at - outage.stopped_at)
        if outage.instance in last:
            following[last[outage.instance]] = outage.stopped_at
        last[outage.instance] = outage

    overlaps = any(_overlaps(o) for o in churn.outages)

    def again(outage: Outage) -> Outage:
        stopped = outage.stopped_at + round(random.triangular(-outage.early_ms, outage.late_ms, 0))
        if outage.back_at is None:
            return replace(outage, stopped_at=stopped)
        back = outage.stopped_at + random.choice(lengths[outage.how])
        back = max(stopped + 1, min(back, following.get(outage, back + 1) - 1))
        gone = outage.gone_at + stopped - outage.stopped_at
        if overlaps and abs(gone - back) < RACE_MS:
            gone = random.choice((stopped, back + 1))
        return replace(outage, stopped_at=stopped, gone_at=gone, back_at=back)

    return replace(churn, outages=tuple(again(o) for o in churn.outages))
