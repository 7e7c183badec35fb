"""Every alert's rule, and what none of them may conclude: nothing from what is not known, nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.gold.alerts import clusters, groups
from pipelines.gold.alerts.alert import CLUSTER, Alert, AlertLimits, Facts
from schemas.states import AlertName, StormScope

RULES: dict[AlertName, Callable[[Facts, AlertLimits], list[Alert]]] = {
    AlertName.REBALANCE_STORM: clusters.storm,
    AlertName.GROUP_STUCK_REBALANCING: groups.stuck,
    AlertName.MEMBER_FLAPPING: groups.flapping,
    AlertName.AVAILABILITY_BURN: groups.burn,
    AlertName.REASSIGNMENT_STALLED: clusters.reassignment,
    AlertName.REBALANCE_TELEMETRY_STALE: clusters.stale,
}
ABOUT_GROUPS = (
    AlertName.REBALANCE_STORM,
    AlertName.GROUP_STUCK_REBALANCING,
    AlertName.MEMBER_FLAPPING,
    AlertName.AVAILABILITY_BURN,
)
"""Their subject is a group, unless it is the whole cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The alerts that hold in one cluster; of the `unknown` ones nobody can say, so what is raised stays."""

    cluster: str
    alerts: Sequence[Alert]
    unknown: frozenset[AlertName]


def evaluate(facts: Facts, limits: AlertLimits) -> Verdict:
    """Which alerts hold. What a storm of the whole fleet explains is not raised beside it, and not resolved by it."""
    unknown = frozenset(name for name in RULES if not _is_known(name, facts, limits))
    found = [alert for name, rule in RULES.items() if name not in unknown for alert in rule(facts, limits)]
    hit = {group for row in facts.storms if row["scope"] == StormScope.FLEET for group in row["group_ids"]}
    kept = [a for a in found if (a.name, a.subject) in facts.raised or not _is_explained(a, hit)]
    return Verdict(cluster=facts.cluster, alerts=kept, unknown=unknown)


def _is_known(name: AlertName, facts: Facts, limits: AlertLimits) -> bool:
    if name is AlertName.REBALANCE_TELEMETRY_STALE:
        return facts.sight.is_certain
    if name is AlertName.REASSIGNMENT_STALLED:
        return facts.polled_until_ms is not None and facts.now_ms - facts.polled_until_ms <= limits.stale_ms
    return facts.sight.is_fresh


def _is_explained(alert: Alert, hit: set[str]) -> bool:
    return alert.name in ABOUT_GROUPS and alert.subject != CLUSTER and alert.subject in hit
