"""Alerts about groups whose pattern lasts (`cluster_patterns`): owners that do not work, and Connect without work."""

from __future__ import annotations

from pipelines.gold.alerts.alert import Alert, AlertLimits, Facts, Row
from pipelines.gold.alerts.escaping import escaped, without_links
from pipelines.gold.patterns.connect_configurations import APART_MS
from schemas.states import AlertName, AlertSeverity, Evidence, Pattern
from schemas.thresholds import MINUTE_MS
from schemas.written import count

LASTING_MS = MINUTE_MS
"""How long a Connect cluster must have been without work. A worker that reads a new configuration takes seconds."""


def owner_not_working(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Return a ticket for each group with owners that do not work although records wait."""
    return [
        _alert(
            facts,
            row,
            AlertName.OWNER_NOT_WORKING,
            AlertSeverity.TICKET,
            f"Nobody works on {count(row['times'], 'partition')} of {escaped(row['subject'])}, although records wait",
        )
        for row in facts.patterns
        if row["pattern"] == Pattern.OWNER_NOT_WORKING
    ]


def connect_config_mismatch(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Return a page for each Connect cluster whose leader goes on sending an error instead of work."""
    until = facts.freshness.known_until_ms or 0
    return [
        _alert(
            facts,
            row,
            AlertName.CONNECT_CONFIG_MISMATCH,
            AlertSeverity.PAGE,
            f"The Connect cluster {escaped(row['subject'])} assigns nothing: its workers have read different "
            "configurations",
        )
        for row in facts.patterns
        if row["pattern"] == Pattern.CONNECT_CONFIG_MISMATCH
        and row["last_at"] - row["started_at"] >= LASTING_MS
        and until - row["last_at"] <= APART_MS
    ]


def _alert(facts: Facts, row: Row, name: AlertName, severity: AlertSeverity, summary: str) -> Alert:
    return Alert(
        name=name,
        cluster=facts.cluster,
        subject=row["subject"],
        severity=severity,
        started_ms=row["started_at"],
        summary=summary,
        description=f"{without_links(row['explanation'])} {without_links(row['action'])} Evidence: {row['evidence']}.",
        evidence=Evidence(row["evidence"]),
    )
