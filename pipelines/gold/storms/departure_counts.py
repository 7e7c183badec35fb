"""Departures of each instance of a group within an hour. A deploy explains a departure only if it does not repeat."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict

from pipelines.gold.event_memberships import MembershipRef
from schemas.thresholds import DEPLOYS_PER_HOUR, HOUR_MS


class DepartureCounts:
    """Departures by instance, added in order of time. Departures older than an hour are ignored."""

    def __init__(self) -> None:
        self._gone_at: dict[int, list[int]] = defaultdict(list)

    def depart(self, ref: MembershipRef) -> None:
        """Count the end of a membership, unless the instance was scaled in."""
        if ref.membership.gone_at is not None and not ref.is_scaled:
            insort(self._gone_at[ref.instance.number], ref.membership.gone_at)

    def of(self, ref: MembershipRef, at: int) -> int:
        """Return how often the instance left within the hour that ends at `at` (milliseconds)."""
        return _within_hour(self._gone_at.get(ref.instance.number, ()), at)

    def deploys(self, ref: MembershipRef, at: int, *, members: int = 0) -> int:
        """Return how often deploys may have restarted this instance within the hour that ends at `at`.

        That is one more than the median number of departures of the other instances, at most `DEPLOYS_PER_HOUR`. Of
        the `members`, those without a recorded departure count as 0.
        """
        self._gone_at = defaultdict(list, {k: v for k, v in self._gone_at.items() if at - v[-1] < HOUR_MS})
        mine = ref.instance.number
        others = [_within_hour(gone, at) for number, gone in self._gone_at.items() if number != mine]
        others = sorted(others + [0] * (members - 1 - len(others)))
        return min(DEPLOYS_PER_HOUR, 1 + others[(len(others) - 1) // 2]) if others else 1


def _within_hour(gone_at: list[int] | tuple[()], at: int) -> int:
    return len(gone_at) - bisect_right(gone_at, at - HOUR_MS)
