"""Processes with a new name at each start that leave soon after they joined.

A second deploy stops as many new processes as the first deploy stopped old ones. Scaling in may stop as many as scaling
out started. A process that crashes repeatedly causes more departures than that.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from schemas.thresholds import DEPLOYS_PER_HOUR, HOUR_MS, LOOP, OVERLAP_MS


@dataclass(slots=True, kw_only=True)
class NewInstances:
    """Times of arrivals and departures within the last hour, in milliseconds.

    `gone`: departures of newcomers. `established`: departures of others. `vacant`: departures without a successor.
    `extra`: arrivals that follow no departure.
    """

    gone: deque[int] = field(default_factory=deque)
    established: deque[int] = field(default_factory=deque)
    vacant: deque[int] = field(default_factory=deque)
    extra: deque[int] = field(default_factory=deque)

    def arrive(self, at: int, *, is_fresh: bool) -> None:
        """Record an arrival at `at`. `is_fresh`: the instance was not seen before."""
        self._forget(at)
        if self.vacant:
            self.vacant.pop()
        elif is_fresh:
            self.extra.append(at)

    def depart(self, at: int, *, since: int, is_new_instance: bool, is_expiry: bool, is_followed: bool) -> None:
        """Record a departure at `at`.

        `since` is when the process joined, 0 if unknown. `is_followed`: its next process has joined already.
        """
        self._forget(at)
        (self.gone if is_new_instance else self.established).append(at)
        if is_followed:
            return
        if is_expiry and self.extra and self.extra[-1] > max(since, at - OVERLAP_MS):
            # The next process joined before the coordinator noticed that this one was gone.
            self.extra.pop()
        else:
            self.vacant.append(at)

    def is_one_too_many(self, at: int) -> bool:
        """Return whether the newcomer that left at `at` is one more than deploys and scaling explain."""
        allowed = max(LOOP - 1, (DEPLOYS_PER_HOUR - 1) * len(self.established) + len(self.extra))
        return bool(self.gone) and self.gone[-1] == at and len(self.gone) > allowed

    def _forget(self, now: int) -> None:
        for times in (self.gone, self.established, self.vacant, self.extra):
            while times and now - times[0] >= HOUR_MS:
                times.popleft()
