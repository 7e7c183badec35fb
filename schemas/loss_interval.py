"""The 90 % interval of a sum of stops. The hard bounds of a sum are too wide: not every stop is as short as it can be.

Model, with reasons and measurements in `docs/decisions/009-interval-of-a-sum.md`:

- The resources of one member in one rebalance stop together, so their errors are the same and add up.
- Different stops (another member, rebalance or group) are independent, so the squares of their errors add up.
- The length of a stop lies between its bounds, most likely at the estimate (a triangle on each side of it). The mean
  squared error is then a sixth of the squared distance to the bound.

So a distance to a bound, times `SHARE`, is the half width of a 90 % interval. Half widths of independent sums add up as
squares, also those of hours, groups and clusters, and never leave the hard bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from math import sqrt
from typing import Any

from schemas.written import between, bounded

NORMAL_90 = 1.645
"""Standard deviations from the mean within which 90 % of a normal distribution lie."""

SHARE = round(NORMAL_90 / sqrt(6), 4)

Loss = tuple[float, float, float]
"""An estimate, then the limits of its interval."""

OF_STOPS = """sum(stopped_ms_min)::DOUBLE AS least_ms, sum(stopped_ms)::DOUBLE AS estimate_ms,
           sum(stopped_ms_max)::DOUBLE AS most_ms"""
"""Columns of an SQL query over `stalls`, grouped by the columns of `ONE_STOP` (per cluster and group)."""

ONE_STOP = "incarnation, generation_id, from_member_id"
"""Columns of `stalls` by which the resources of a group that stop together are known."""

OF_SUM = f"""sum(least_ms) / 1000 AS lost_min, sum(estimate_ms) / 1000 AS lost, sum(most_ms) / 1000 AS lost_max,
           (sum(estimate_ms) - {SHARE} * sqrt(sum((estimate_ms - least_ms) * (estimate_ms - least_ms)))) / 1000
               AS lost_low,
           (sum(estimate_ms) + {SHARE} * sqrt(sum((most_ms - estimate_ms) * (most_ms - estimate_ms)))) / 1000
               AS lost_high"""
"""Columns of an SQL query over such rows, in resource-seconds."""

OF_SUMS = """sum(lost_min) AS lost_min, sum(lost) AS lost, sum(lost_max) AS lost_max,
           sum(lost) - sqrt(sum((lost - lost_low) * (lost - lost_low))) AS lost_low,
           sum(lost) + sqrt(sum((lost_high - lost) * (lost_high - lost))) AS lost_high"""
"""Columns of an SQL query over independent sums of `OF_SUM`."""


def loss(stops: Iterable[tuple[Hashable, float, float, float]]) -> Loss:
    """Return the sum of stops with its 90 % interval, in the unit of the stops.

    Each stop is the key of the stop that it is a part of, then its lower bound, estimate and upper bound.
    """
    total, below, above = 0.0, defaultdict[Hashable, float](float), defaultdict[Hashable, float](float)
    for key, least, estimate, most in stops:
        total += estimate
        below[key] += estimate - least
        above[key] += most - estimate
    low, high = (SHARE * sqrt(sum(width * width for width in each.values())) for each in (below, above))
    return total, total - low, total + high


def summed(losses: Iterable[Loss]) -> Loss:
    """Return the sum of independent losses with its interval."""
    total = below = above = 0.0
    for estimate, low, high in losses:
        total += estimate
        below += (estimate - low) ** 2
        above += (high - estimate) ** 2
    return total, total - sqrt(below), total + sqrt(above)


def written(estimate: float, low: float, high: float) -> str:
    """Return an estimate with its 90 % interval, or the value alone if both limits are written alike."""
    return bounded(estimate, low, high, "90 %")


def limits(low: float, high: float) -> str:
    """Return the limits of a 90 % interval in words."""
    return f"90 % interval {between(low, high)}"


def of_row(row: Mapping[str, Any]) -> str:
    """Return the loss of a row with columns `lost_resource_seconds*`.

    Rows of an earlier Regroup have no interval; their hard bounds are shown, without "90 %".
    """
    estimate = row["lost_resource_seconds"] or 0.0
    low, high = row.get("lost_resource_seconds_low"), row.get("lost_resource_seconds_high")
    if low is not None and high is not None:
        return written(estimate, low, high)
    return bounded(estimate, row["lost_resource_seconds_min"] or 0.0, row["lost_resource_seconds_max"] or 0.0)
