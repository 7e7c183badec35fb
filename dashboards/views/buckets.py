"""Spans of time of equal length on the clock: minutes, hours, days or weeks, as the range needs them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import gcd

from dashboards.urlstate import Window
from dashboards.zone import instants_of, local, rounded_down

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
STEPS = (("a second", 1_000), ("10 seconds", 10_000), ("a minute", MINUTE), ("10 minutes", 10 * MINUTE),
         ("an hour", HOUR), ("a day", DAY), ("a week", 7 * DAY))  # fmt: skip
MOST = 60


@dataclass(frozen=True, slots=True)
class Buckets:
    """`edges` are timestamps: bucket `i` is from `edges[i]` until before `edges[i + 1]`. `step` is its name.

    All edges are a multiple of `slot_ms` after the first one, so a query can count slots.
    """

    step: str
    edges: Sequence[int]

    @property
    def origin(self) -> int:
        return self.edges[0]

    @property
    def slot_ms(self) -> int:
        return gcd(*(edge - self.origin for edge in self.edges))

    def __len__(self) -> int:
        return len(self.edges) - 1

    def of_slot(self, slot: int) -> int:
        """Return the bucket of a slot."""
        return bisect_right(self.edges, self.origin + slot * self.slot_ms) - 1


def buckets(window: Window) -> Buckets:
    """Return the buckets that cover the window: at most about `MOST`, unless they are weeks."""
    step, width = next(((name, ms) for name, ms in STEPS if window.width <= MOST * ms), STEPS[-1])
    wall = local(window.start).replace(tzinfo=None)
    wall = rounded_down(wall, timedelta(milliseconds=width))
    first = max(at for at in (*instants_of(wall), 0) if at <= window.start)
    edges = [first]
    while edges[-1] < window.end:
        # Days are as long as clocks make them; shorter steps are not changed by a set clock.
        if width >= DAY:
            wall += timedelta(milliseconds=width)
            edges.append(min(instants_of(wall)))
        else:
            edges.append(edges[-1] + width)
    return Buckets(step, edges)
