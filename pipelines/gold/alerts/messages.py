"""Labels and texts of a row of `alerts`, for receivers. Labels only identify: an Alertmanager deduplicates by them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from pipelines.gold.alerts.alert import CLUSTER
from pipelines.gold.alerts.escaping import escaped, without_links
from pipelines.gold.alerts.rules import ABOUT_GROUPS

Row = Mapping[str, Any]
FLEET = "fleet"
"""Value of the label `subject` of an alert about the whole cluster."""


def labels(row: Row) -> dict[str, str]:
    """Return the labels `alertname`, `cluster`, `severity`, and `group` or, if the alert is not about a group,
    `subject`.
    """
    about_group = row["alert_name"] in ABOUT_GROUPS and row["subject"] != CLUSTER
    about = {"group": escaped(row["subject"])} if about_group else {"subject": escaped(row["subject"]) or FLEET}
    return {
        "alertname": str(row["alert_name"]),
        "cluster": escaped(row["cluster"]),
        "severity": str(row["severity"]),
        **about,
    }


def texts(row: Row, runbook_url: str) -> dict[str, str]:
    """Return summary and description, with markup encoded again as a safeguard, and the links."""
    return {
        "summary": without_links(row["summary"]),
        "description": without_links(row["description"]),
        "runbook_url": runbook_url,
        "dashboard_url": row["dashboard_url"],
    }


def identity(row: Row) -> str:
    """Return an id that is the same for every repetition of one state of one alert, and different for any other."""
    state = "firing" if row["resolved_at"] is None else "resolved"
    parts = [row[name] for name in ("cluster", "alert_name", "subject", "started_at", "severity")]
    return sha256("\0".join(map(str, [*parts, state])).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def stamp(ms: int) -> str:
    """Return a time in milliseconds as RFC 3339 text with milliseconds."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
