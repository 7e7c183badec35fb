"""Links in alerts: the page that shows the event, and the runbook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboards.urlstate import State
from jobs.config.settings import Settings
from pipelines.gold.alerts.alert import CLUSTER, Alert
from pipelines.gold.alerts.rules import ABOUT_GROUPS, RULES

AROUND_MS = 15 * 60_000
"""A link's page shows this much time before and after the start of the alert."""

RUNBOOK = "{alert}"
"""Placeholder for the alert's name in `runbook_url`."""


def dashboard_url(settings: Settings, alert: Alert) -> str:
    """Return the absolute address of the page for the alert, with the time around its start."""
    state = State(page=None, start=str(alert.started_ms - AROUND_MS), end=str(alert.started_ms + AROUND_MS))
    if alert.storm_id is not None:
        path = state.href("storms", cluster=alert.cluster, storm=alert.storm_id)
    elif alert.name in ABOUT_GROUPS and alert.subject != CLUSTER:
        path = state.href("group", cluster=alert.cluster, group=alert.subject)
    else:
        path = state.href(RULES[alert.name].page)
    return f"{settings.base_url}{path}"


def runbook_url(settings: Settings, row: Mapping[str, Any]) -> str:
    """Return the address of the alert's runbook, from the settings or else on Regroup's pages."""
    where = settings.runbook_url or f"{settings.base_url}/runbooks"
    if RUNBOOK not in where:
        where = f"{where.rstrip('/')}/{RUNBOOK}"
    return where.replace(RUNBOOK, str(row["alert_name"]))
