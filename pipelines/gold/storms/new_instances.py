"""Processes that go soon after they came, where nothing but a new name with each start is known of them.

A deploy that follows another ends as many new processes as the first had ended old ones; scaling in may end as many as
scaling out had begun. One process that cannot stay ends more of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from schemas.thresholds import DEPLOYS_PER_HOUR, HOUR_MS, LOOP, OVERLAP_MS


@dataclass(slots=True, kw_only=True)
class NewInstances:
    """Times within the last hour. `vacant`: departures that nobody has followed; `extra`: arrivals beyond these."""

    gone: deque[int] = field(default_factory=deque)
    established: deque[int] = field(default_factory=deque)
    vacant: deque[int] = field(default_factory=deque)
    extra: deque[int] = field(default_factory=deque)

    def comes(self, at: int, *, is_fresh: bool) -> None:
        self._forget(at)
        if self.vacant:
            self.vacant.pop()
        elif is_fresh:
            self.extra.append(at)

    def goes(self, at: int, *, since: int, is_newcomer: bool, is_expiry: bool, is_followed: bool) -> None:
        """`since`: when the process came, 0 if that was not read. `is_followed`: its next process is there already."""
        self._forget(at)
        (self.gone if is_newcomer else self.established).append(at)
        if is_followed:
            return
        if is_expiry and self.extra and self.extra[-1] > max(since, at - OVERLAP_MS):
            # The process that followed was there before this one was missed.
            self.extra.pop()
        else:
            self.vacant.append(at)

    def is_one_too_many(self, at: int) -> bool:
        """Whether the last of them that went is more than deploys and scaling explain."""
        allowed = max(LOOP - 1, (DEPLOYS_PER_HOUR - 1) * len(self.established) + len(self.extra))
        return bool(self.gone) and self.gone[-1] == at and len(self.gone) > allowed

    def _forget(self, now: int) -> None:
        for times in (self.gone, self.established, self.vacant, self.extra):
            while times and now - times[0] >= HOUR_MS:
                times.popleft()
