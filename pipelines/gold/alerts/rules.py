"""The rule of every alert, and their evaluation: unknown data neither raises nor resolves an alert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.gold.alerts import clusters, groups, lasting_patterns, topics
from pipelines.gold.alerts.alert import CLUSTER, Alert, AlertLimits, Facts
from schemas.states import AlertName, StormScope


def _is_fresh(facts: Facts, _: AlertLimits) -> bool:
    return facts.freshness.is_fresh


def _is_certain(facts: Facts, _: AlertLimits) -> bool:
    return facts.freshness.is_certain


def _is_polled(facts: Facts, limits: AlertLimits) -> bool:
    return facts.is_polled(limits)


def _is_seen_and_polled(facts: Facts, limits: AlertLimits) -> bool:
    return _is_fresh(facts, limits) and _is_polled(facts, limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    """The rule of one alert.

    `find` returns the alerts that hold; `is_known` whether the data suffices to judge. `is_about_groups`: the subject
    is a group (or the whole cluster), and the link leads to the group's page. Otherwise the link leads to `page`.
    """

    find: Callable[[Facts, AlertLimits], list[Alert]]
    is_known: Callable[[Facts, AlertLimits], bool] = _is_fresh
    is_about_groups: bool = False
    page: str = "fleet"


RULES: dict[AlertName, AlertRule] = {
    AlertName.REBALANCE_STORM: AlertRule(find=clusters.storm, is_about_groups=True),
    AlertName.GROUP_STUCK_REBALANCING: AlertRule(find=groups.stuck, is_about_groups=True),
    AlertName.TOPIC_WITHOUT_OWNER: AlertRule(find=topics.unowned, is_about_groups=True),
    AlertName.MEMBER_FLAPPING: AlertRule(find=groups.flapping, is_about_groups=True),
    AlertName.AVAILABILITY_BURN: AlertRule(find=groups.burn, is_about_groups=True),
    AlertName.REASSIGNMENT_STALLED: AlertRule(find=clusters.reassignment, is_known=_is_polled, page="reassignments"),
    AlertName.OFFSETS_PARTITION_DOWN: AlertRule(find=clusters.offsets_partition, page="health"),
    AlertName.CONNECT_CONFIG_MISMATCH: AlertRule(find=lasting_patterns.connect_config_mismatch, is_about_groups=True),
    AlertName.OWNER_NOT_WORKING: AlertRule(
        find=lasting_patterns.owner_not_working, is_known=_is_seen_and_polled, is_about_groups=True
    ),
    AlertName.REBALANCE_TELEMETRY_STALE: AlertRule(find=clusters.stale, is_known=_is_certain),
}
"""All alerts. A new alert needs a name in `AlertName`, a rule here and a runbook; tests compare the three."""

ABOUT_GROUPS = tuple(name for name, rule in RULES.items() if rule.is_about_groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvaluation:
    """The alerts that hold in one cluster. `unknown` alerts could not be judged, so raised ones stay open."""

    cluster: str
    alerts: Sequence[Alert]
    unknown: frozenset[AlertName]


def evaluate(facts: Facts, limits: AlertLimits) -> AlertEvaluation:
    """Return the alerts that hold.

    During a fleet storm, and while an offsets partition is down, the groups hit raise no alerts of their own; raised
    ones stay.
    """
    unknown = frozenset(name for name, rule in RULES.items() if not rule.is_known(facts, limits))
    found = [alert for name, rule in RULES.items() if name not in unknown for alert in rule.find(facts, limits)]
    incidents = [row for row in clusters.open_storms(facts) if row["scope"] == StormScope.FLEET]
    if AlertName.OFFSETS_PARTITION_DOWN not in unknown:
        incidents += clusters.partitions_down(facts)
    hit = {group for row in incidents for group in row["group_ids"]}
    kept = [a for a in found if (a.name, a.subject) in facts.raised or not _is_explained(a, hit)]
    return AlertEvaluation(cluster=facts.cluster, alerts=kept, unknown=unknown)


def _is_explained(alert: Alert, hit: set[str]) -> bool:
    return alert.name in ABOUT_GROUPS and alert.subject != CLUSTER and alert.subject in hit
