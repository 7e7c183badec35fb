"""The predicted cost of a churn under a policy: many replays, with latencies drawn from the group's measured ones."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from pipelines.gold.advice.classic_replay import ClassicReplay
from pipelines.gold.advice.consumer_replay import ConsumerReplay
from pipelines.gold.advice.latencies import Latencies
from pipelines.gold.advice.replay import Outcome, Policy
from pipelines.gold.churn import Churn, Outage
from schemas.rows import GenerationRow
from schemas.states import GroupEventKind, GroupProtocol, GroupType

RUNS = 60
WORK = 60_000
"""Resources x outages x runs above which fewer runs are made."""

LARGEST_WORK = 200_000
"""Largest product of (resources + instances) and (outages + arrivals) of one replay. A replay takes time proportional
to this product, which clients can make large with few records. Some thousand members that all restart exceed it.
"""

FEWEST_RUNS = 12
ROUGH_RUNS = 3
TAIL = 0.025
RACE_MS = 1_000
"""If two processes of an instance overlap by less than this, either may reach the coordinator first in a repetition."""

STARTING = 0.1
"""Share by which the same process takes longer or shorter to start again."""

REPRODUCED = 0.3
"""Largest relative error of the replay with the current settings. If it is larger, other replays are not used."""

NEGLIGIBLE = 1.0
"""Error in resource-seconds that is accepted whatever its ratio."""

MODEL_ERROR = 0.15
"""Minimum width of an interval to either side, as a share, for effects that are not modeled (threads, networks)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A predicted loss in resource-seconds, with its interval.

    In each set of replays, at most one in forty lies below `low`, and at most one in forty above `high`. `exact` and
    `drawn` hold the loss of every replay of the two sets, in the order of the seeds.
    """

    lost: float
    low: float
    high: float
    rebalances: int
    exact: tuple[float, ...] = ()
    drawn: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What a change saves in resource-seconds, with its interval. A negative saving is a cost."""

    estimate: float
    low: float
    high: float


def repetitions(churn: Churn, latencies: Latencies, seed: str, runs: int | None = None) -> tuple[Churn, ...]:
    """Return as many variations of the churn as `predict` replays, because absences will not repeat exactly.

    Each length is drawn from the group's absences of the same kind, a process takes a little longer or shorter to
    start, and each absence begins anywhere within its bounds and at any time within a heartbeat interval, which decides
    how soon the others notice.
    """
    runs = runs or runs_of(churn)
    return tuple(_redrawn(churn, f"{seed}/{run}", latencies.usual_heartbeat_ms) for run in range(runs, 2 * runs))


def predict(
    churn: Churn,
    latencies: Latencies,
    policy: Policy,
    seed: str,
    *,
    runs: int | None = None,
    added: float = 0.0,
    repeated: Sequence[Churn] = (),
) -> Prediction:
    """Return the predicted cost of the churn under a policy, from two sets of replays. The result is deterministic.

    The first set, for the estimate, uses every absence as it was. The second set, for the interval, replays the
    `repetitions` of the churn.

    Args:
        churn: the churn to replay.
        latencies: the group's latencies.
        policy: the policy under which it is replayed.
        seed: two predictions with the same seed draw the same random numbers, as far as they replay the same.
        runs: replays per set; None for as many as the size of the churn allows.
        added: resource-seconds that every replay loses in addition.
        repeated: the result of `repetitions` with the same arguments, if it is known already.
    """
    runs = runs or runs_of(churn)
    replays = [_replay(churn, latencies, policy, _random(seed, run)) for run in range(runs)]
    exact = tuple(o.lost_ms / 1000 + added for o in replays)
    drawn = tuple(
        _replay(varied, latencies, policy, _random(seed, run)).lost_ms / 1000 + added
        for run, varied in enumerate(repeated or repetitions(churn, latencies, seed, runs), runs)
    )
    lost = fmean(exact)
    low, high = _range(exact, drawn)
    return Prediction(
        lost=lost,
        low=min(low, lost * (1 - MODEL_ERROR)),
        high=max(high, lost * (1 + MODEL_ERROR)),
        rebalances=round(fmean(o.rebalances for o in replays)),
        exact=exact,
        drawn=drawn,
    )


def saving(now: Prediction, changed: Prediction) -> Saving:
    """Return what a change saves: the replays under the present settings minus those with the change, seed by seed.

    Both replays of a pair have the same absences, so variations that both share cancel. The replay of the present
    settings can be compared with what happened, but the replay with the change cannot. So the interval has at least the
    model error of the replay with the change.
    """
    exact, drawn = (
        [a - b for a, b in zip(first, second, strict=True)]
        for first, second in ((now.exact, changed.exact), (now.drawn, changed.drawn))
    )
    estimate, error = now.lost - changed.lost, MODEL_ERROR * changed.lost
    low, high = _range(exact, drawn)
    return Saving(estimate=estimate, low=min(low, estimate - error), high=max(high, estimate + error))


def _range(*sets: Sequence[float]) -> tuple[float, float]:
    """Return limits below and above which at most one in forty values of each set lies."""
    ordered = [sorted(each) for each in sets]
    cuts = [int(len(each) * TAIL) for each in ordered]
    return (
        min(each[cut] for each, cut in zip(ordered, cuts, strict=True)),
        max(each[-1 - cut] for each, cut in zip(ordered, cuts, strict=True)),
    )


def rough(churn: Churn, latencies: Latencies, policy: Policy, seed: str) -> float:
    """Return a rough prediction of the loss in resource-seconds, to choose between policies that differ in a number."""
    runs = (_replay(churn, latencies, policy, _random(seed, run)) for run in range(ROUGH_RUNS))
    return fmean(o.lost_ms for o in runs) / 1000


def not_replayed(newest: GenerationRow, found: Churn) -> str | None:
    """Return why this group is not replayed with other settings, or None if it is."""
    if newest["group_type"] not in (GroupType.CONSUMER, GroupType.STREAMS):
        return f"Groups of type {newest['group_type']} are not replayed."
    if newest["group_protocol"] == GroupProtocol.STREAMS:
        return "Groups of the streams protocol (KIP-1071) are not replayed."
    if not is_replayable(found):
        return "Too many members joined and left in this window to replay it with other settings."
    return None


def reproduces(as_is: Prediction, measured: float) -> bool:
    """Return whether a replay under the present settings comes near the measured loss, in resource-seconds."""
    off = abs(as_is.lost - measured)
    return as_is.low <= measured <= as_is.high or off <= max(NEGLIGIBLE, REPRODUCED * measured)


def is_replayable(churn: Churn) -> bool:
    """Return whether replays of this churn take a bounded time."""
    return _work(churn) <= LARGEST_WORK


def runs_of(churn: Churn) -> int:
    """Return the number of replays of this churn per set, fewer for a large churn."""
    return max(FEWEST_RUNS, min(RUNS, WORK // _work(churn)))


def _work(churn: Churn) -> int:
    return (len(churn.outages) + len(churn.arrivals) + 1) * (len(churn.resources) + len(churn.instances) + 1)


def _random(seed: str, run: int) -> Random:
    return Random(int.from_bytes(hashlib.sha256(f"{seed}/{run}".encode()).digest()[:8]))  # noqa: S311 - a replay


def _replay(churn: Churn, latencies: Latencies, policy: Policy, random: Random) -> Outcome:
    kind = ConsumerReplay if policy.is_consumer_protocol else ClassicReplay
    return kind(churn, latencies, policy, random).run()


def _overlaps(outage: Outage) -> bool:
    """Return whether the next process asked to join before the previous one had left."""
    return (
        outage.departure_kind == GroupEventKind.LEFT and outage.back_at is not None and outage.back_at < outage.gone_at
    )


def _redrawn(churn: Churn, seed: str, heartbeat_ms: int) -> Churn:
    """Return the churn with other absences. What is drawn for an absence does not depend on the other absences, so a
    churn with fewer of them gets the same ones.
    """
    lengths: dict[GroupEventKind, list[int]] = defaultdict(list)
    following: dict[Outage, int] = {}
    last: dict[int, Outage] = {}
    for outage in sorted(churn.outages, key=lambda o: o.stopped_at):
        if outage.back_at is not None:
            lengths[outage.departure_kind].append(outage.back_at - outage.stopped_at)
        if outage.instance in last:
            following[last[outage.instance]] = outage.stopped_at
        last[outage.instance] = outage

    overlaps = any(_overlaps(o) for o in churn.outages)

    def again(outage: Outage) -> Outage:
        random = Random(f"{seed}/{outage.instance}/{outage.stopped_at}")  # noqa: S311 - a replay
        phase = round(random.uniform(-0.5, 0.5) * heartbeat_ms)
        # A member that was dropped cannot have stopped after that.
        stopped = min(
            outage.stopped_at + phase + round(random.triangular(-outage.early_ms, outage.late_ms, 0)),
            outage.gone_at + phase,
        )
        stopped = max(stopped, churn.start_ms + 1)
        if outage.back_at is None:
            return replace(outage, stopped_at=stopped, gone_at=max(stopped, outage.gone_at + phase))
        length = random.choice(lengths[outage.departure_kind]) * random.uniform(1 - STARTING, 1 + STARTING)
        back = outage.stopped_at + phase + round(length)
        back = max(stopped + 1, min(back, following.get(outage, back + 1) - 1))
        gone = outage.gone_at + stopped - outage.stopped_at
        if overlaps and abs(gone - back) < RACE_MS:
            gone = random.choice((stopped, back + 1))
        return replace(outage, stopped_at=stopped, gone_at=gone, back_at=back)

    return replace(churn, outages=tuple(again(o) for o in churn.outages))
