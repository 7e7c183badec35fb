"""How fast a group uses up what its availability target lets it lose: two windows each, as the SRE workbook has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.states import AlertSeverity

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Burning at `rate` times what 30 days allow, over the long window and still over the short one."""

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
"""An open alert holds on above this share of the rates, so that one that hovers around them is one alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Within one window: resource-milliseconds lost with their bounds, the first stop, and how many resources the group
    had while it had any.
    """

    lost_ms: float
    lost_ms_min: float
    lost_ms_max: float
    first_ms: int
    resources: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one group lost, by window. A window in which it lost nothing is missing."""

    group_id: str
    windows: Mapping[int, Stopped]

    def burn(self, window_ms: int, availability: float) -> float:
        """Lost, of what is owned when the group is there all the time, in units of what the target allows.

        A group that was there for a part of the window is measured against all of it: else one that lives for a minute
        would be judged by how it started.
        """
        stopped = self.windows.get(window_ms)
        if stopped is None or not stopped.resources:
            return 0.0
        return stopped.lost_ms / (stopped.resources * window_ms) / (1 - availability)


def least_loss_ms(availability: float) -> float:
    """A group of one resource that loses less, in the longest window, burns by no pair; no group burns with less."""
    return min(KEEPS * pair.rate * (1 - availability) * pair.long_ms for pair in PAIRS)


def burning(loss: Loss, availability: float, *, is_raised: bool) -> Pair | None:
    """The first pair of windows that both burn as fast; an alert that `is_raised` holds on at a lower rate."""
    least = KEEPS if is_raised else 1.0
    for pair in PAIRS:
        if all(loss.burn(window, availability) >= least * pair.rate for window in (pair.long_ms, pair.short_ms)):
            return pair
    return None
