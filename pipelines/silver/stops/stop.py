"""Bounds and best estimate of the time at which something stopped."""

from __future__ import annotations

from typing import NamedTuple

from schemas.states import Evidence


class Stop(NamedTuple):
    """Bounds and estimate of a stop in milliseconds; `earliest <= estimate <= latest`."""

    earliest: int
    latest: int
    estimate: int
    evidence: Evidence

    @classmethod
    def within(cls, earliest: int, latest: int, estimate: int, evidence: Evidence = Evidence.BOUNDED) -> Stop:
        """Return a stop with valid bounds, even if the clocks of two brokers disagree."""
        latest = max(earliest, latest)
        return cls(earliest=earliest, latest=latest, estimate=min(max(estimate, earliest), latest), evidence=evidence)
