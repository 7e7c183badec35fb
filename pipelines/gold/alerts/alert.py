"""An alert, and the input of the alert rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from pipelines.gold.alerts.burn import Loss
from pipelines.gold.alerts.freshness import Freshness
from schemas.states import AlertName, AlertSeverity, Evidence

Row = Mapping[str, Any]
CLUSTER = ""
"""Subject of an alert about the whole cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A condition that holds. `started_ms` is in record time. Untrusted names in the texts are escaped. `storm_id` is
    the id of the storm that the alert is about.
    """

    name: AlertName
    cluster: str
    subject: str
    severity: AlertSeverity
    started_ms: int
    summary: str
    description: str
    evidence: Evidence
    storm_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLimits:
    """Thresholds of the alerts: milliseconds, and the availability target (0 to 1)."""

    stuck_ms: int
    stale_ms: int
    availability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The rows of one cluster from which alerts are derived, with timestamps in milliseconds.

    `storms`: open storms. `rebalancing`: groups with an open rebalance. `flapping`: hours of `group_health` with
    flapping members. `departures`: how many `times` each `instance` of these groups left, by hour. `losses`: by group.
    `stalled`: reassignments. `unowned`: rows of `patterns` about topics without an owner, each with `had_owner`, and
    `is_newest` if no generation followed. `causes`: the newest diagnosis of rank 1 by group. `patterns`: rows of
    `cluster_patterns` that last. `raised`: (alert, subject) of open alerts.
    """

    cluster: str
    now_ms: int
    freshness: Freshness
    polled_until_ms: int | None = None
    storms: Sequence[Row] = ()
    rebalancing: Sequence[Row] = ()
    flapping: Sequence[Row] = ()
    departures: Sequence[Row] = ()
    losses: Sequence[Loss] = ()
    stalled: Sequence[Row] = ()
    unowned: Sequence[Row] = ()
    causes: Mapping[str, Row] = field(default_factory=dict)
    patterns: Sequence[Row] = ()
    raised: AbstractSet[tuple[str, str]] = frozenset()

    def is_polled(self, limits: AlertLimits) -> bool:
        """Return whether the newest poll is recent enough to judge what only polls show."""
        return self.polled_until_ms is not None and self.now_ms - self.polled_until_ms <= limits.stale_ms
