"""Addresses that alerts carry: the page that shows what happened, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboards.urlstate import State
from jobs.config.settings import Settings
from pipelines.gold.alerts.alert import CLUSTER, Alert
from pipelines.gold.alerts.rules import ABOUT_GROUPS, RULES

AROUND_MS = 15 * 60_000
"""A link shows so much before and after the start of what happened."""

RUNBOOK = "{alert}"
"""Stands in `runbook_url` for the alert's name."""


def dashboard_url(settings: Settings, alert: Alert) -> str:
    """The page that shows the alert, absolute, with the time around its start."""
    state = State(page=None, start=str(alert.started_ms - AROUND_MS), end=str(alert.started_ms + AROUND_MS))
    if alert.storm_id is not None:
        path = state.href("storms", cluster=alert.cluster, storm=alert.storm_id)
    elif alert.name in ABOUT_GROUPS and alert.subject != CLUSTER:
        path = state.href("group", cluster=alert.cluster, group=alert.subject)
    else:
        path = state.href(RULES[alert.name].page)
    return f"{_base(settings)}{path}"


def runbook_url(settings: Settings, row: Mapping[str, Any]) -> str:
    """Where the runbook of the alert is: as the settings say, else on our own pages."""
    where = settings.runbook_url or f"{_base(settings)}/runbooks"
    if RUNBOOK not in where:
        where = f"{where.rstrip('/')}/{RUNBOOK}"
    return where.replace(RUNBOOK, str(row["alert_name"]))


def _base(settings: Settings) -> str:
    return (settings.dashboard_url or f"http://{settings.host}:{settings.port}").rstrip("/")
