"""Burn rates: how fast a group uses its error budget, with two windows per rate, as in Google's SRE workbook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.states import AlertSeverity

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A threshold: the error budget burns at `rate` times the rate that uses it up in 30 days, in both windows."""

    rate: float
    long_ms: int
    short_ms: int
    severity: AlertSeverity


PAIRS = (
    Pair(rate=14.4, long_ms=HOUR_MS, short_ms=5 * MINUTE_MS, severity=AlertSeverity.PAGE),
    Pair(rate=6.0, long_ms=6 * HOUR_MS, short_ms=30 * MINUTE_MS, severity=AlertSeverity.PAGE),
    Pair(rate=1.0, long_ms=3 * DAY_MS, short_ms=6 * HOUR_MS, severity=AlertSeverity.TICKET),
)
WINDOWS = tuple(sorted({ms for pair in PAIRS for ms in (pair.long_ms, pair.short_ms)}))
KEEPS = 0.5
"""An open alert holds above this share of the rates, so that a rate that fluctuates causes only one alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The loss in one window: resource-milliseconds with hard bounds and a 90 % interval, the time of the first stop,
    and the number of resources that the group had while it had any.
    """

    lost_ms: float
    lost_ms_min: float
    lost_ms_max: float
    first_ms: int
    resources: float
    lost_ms_low: float | None = None
    lost_ms_high: float | None = None

    @property
    def low_ms(self) -> float:
        """Return the lower end of the 90 % interval, or else the lower bound."""
        return self.lost_ms_min if self.lost_ms_low is None else self.lost_ms_low

    @property
    def high_ms(self) -> float:
        """Return the upper end of the 90 % interval, or else the upper bound."""
        return self.lost_ms_max if self.lost_ms_high is None else self.lost_ms_high


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss of one group by window (milliseconds). Windows without a loss are missing."""

    group_id: str
    windows: Mapping[int, Stopped]

    def burn(self, window_ms: int, availability: float) -> float:
        """Return the burn rate: the lost share of resource-time, divided by the share that the target allows to lose.

        The resource-time is that of the whole window, even if the group existed for only a part of it. Otherwise a
        group that exists for a minute would be judged by its start.
        """
        stopped = self.windows.get(window_ms)
        if stopped is None or not stopped.resources:
            return 0.0
        return stopped.lost_ms / (stopped.resources * window_ms) / (1 - availability)


def least_loss_ms(availability: float) -> float:
    """Return the least loss (resource-milliseconds) with which any group can reach a threshold.

    It is the loss of a group with one resource.
    """
    return min(KEEPS * pair.rate * (1 - availability) * pair.long_ms for pair in PAIRS)


def burning(loss: Loss, availability: float, *, is_raised: bool) -> Pair | None:
    """Return the first pair whose rate both windows reach, or None. A raised alert holds at a lower rate (`KEEPS`)."""
    least = KEEPS if is_raised else 1.0
    for pair in PAIRS:
        if all(loss.burn(window, availability) >= least * pair.rate for window in (pair.long_ms, pair.short_ms)):
            return pair
    return None
