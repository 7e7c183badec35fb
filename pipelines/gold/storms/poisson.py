"""The least number of events within a window that chance does not explain at the usual rate."""

from __future__ import annotations

from math import exp

from schemas.thresholds import DAY_MS

ODDS_PER_DAY = 1 / 2_000
"""False alarms a day that chance may cause: one in two thousand days."""


def least_events(per_day: float, window_ms: int, *, least: int, odds_per_day: float = ODDS_PER_DAY) -> int:
    """Return the least number n of events within `window_ms` that chance causes at most `odds_per_day` times a day.

    The result is at least `least`. Model: `per_day` random events a day; the probability that an event is followed by
    n - 1 others within the window is that of a Poisson distribution.
    """
    expected = per_day * window_ms / DAY_MS
    term, count, tail = exp(-expected), 0, 1.0
    while count + 1 < least or per_day * tail > odds_per_day:
        tail -= term
        count += 1
        term *= expected / count
        if term < 1e-12 and count > expected:
            tail = 0.0
    return max(least, count + 1)
