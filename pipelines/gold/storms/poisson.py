"""How many events within a window are more than chance brings at the usual rate."""

from __future__ import annotations

from math import exp

from schemas.thresholds import DAY_MS

ODDS_PER_DAY = 1 / 2_000
"""Chance alone may call for somebody once in two thousand days."""


def least_events(per_day: float, window_ms: int, *, least: int, odds_per_day: float = ODDS_PER_DAY) -> int:
    """Events within `window_ms` that chance brings together at most `odds_per_day` times a day, and no fewer than
    `least`.

    Events come at random, `per_day` of them: each is followed within the window by n - 1 others with the probability
    that a Poisson distribution has for that.
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
