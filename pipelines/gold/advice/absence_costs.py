"""What each absence of an instance cost, and how the costs before and after a change compare."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import NormalDist, fmean, variance

from pipelines.gold.churn import Churn
from schemas.states import AdviceStatus
from schemas.thresholds import ENOUGH_ABSENCES

SHARE = 0.9
"""Share of the interval of a comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsenceCost:
    """An absence that ended: when the instance stopped (ms), and the resource-seconds lost until the next absence."""

    stopped_at: int
    lost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the absences after a change saved in resource-seconds, against as many before it, with a 90 % interval."""

    saved: float
    low: float
    high: float


def absence_costs(found: Churn) -> list[AbsenceCost]:
    """Return the cost of each absence of a churn that ended, in order of time.

    A stop counts for the last absence that began before it, and for the first one if none did: absences of one rolling
    restart share its rebalances, and only their sum is known.
    """
    outages = sorted(found.outages, key=lambda o: (o.stopped_at, o.instance))
    begins = [o.stopped_at for o in outages]
    lost_ms = [0] * len(outages)
    for at, lost in found.stops:
        if outages:
            lost_ms[max(0, bisect_right(begins, at) - 1)] += lost
    return [
        AbsenceCost(stopped_at=o.stopped_at, lost=lost / 1000)
        for o, lost in zip(outages, lost_ms, strict=True)
        if o.back_at is not None
    ]


def compare(before: Sequence[AbsenceCost], after: Sequence[AbsenceCost]) -> Comparison | None:
    """Return what the absences since a change saved; None if there are fewer than `ENOUGH_ABSENCES` before or after.

    The interval is Welch's for the difference of two means. It holds for chance among the absences, not for absences
    that are of another kind, such as longer ones.
    """
    if min(len(before), len(after)) < ENOUGH_ABSENCES:
        return None
    first, last = [c.lost for c in before], [c.lost for c in after]
    saved = fmean(first) - fmean(last)
    errors = variance(first) / len(first), variance(last) / len(last)
    width = 0.0
    if (error := fsum(errors)) > 0:
        # Shares of the sum, because squares of very small errors would be 0.
        shares = [part / error for part in errors]
        freedom = 1 / (shares[0] ** 2 / (len(first) - 1) + shares[1] ** 2 / (len(last) - 1))
        width = t_quantile((1 + SHARE) / 2, freedom) * sqrt(error)
    n = len(last)
    return Comparison(saved=saved * n, low=(saved - width) * n, high=(saved + width) * n)


def status(found: Comparison | None) -> AdviceStatus:
    """Return verified or refuted if chance alone does not explain the comparison, else tried: too early to judge."""
    if found is None or found.low <= 0 <= found.high:
        return AdviceStatus.TRIED
    return AdviceStatus.VERIFIED if found.low > 0 else AdviceStatus.REFUTED


def t_quantile(probability: float, freedom: float) -> float:
    """Return a quantile of Student's t distribution by the expansion of Cornish and Fisher (Abramowitz and Stegun
    26.7.5): within 2 % of the exact value from two degrees of freedom and for probabilities up to 0.95.

    >>> [round(t_quantile(0.95, n), 2) for n in (2, 5, 30)]
    [2.91, 2.01, 1.7]
    """
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + fsum(term / freedom**power for power, term in enumerate(terms, 1))
