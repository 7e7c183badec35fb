"""Rows of `alerts`: raising, updating and resolving alerts, and which receivers still need them.

Timestamps are in milliseconds. A row's `sent_to` holds the receivers that accepted its last state (raised, raised to a
page, resolved). The alert is sent again to every receiver that is not in `sent_to`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pipelines.gold.alerts.alert import Alert
from pipelines.gold.alerts.rules import AlertEvaluation
from schemas.rows import AlertRow
from schemas.states import AlertName, AlertSeverity

RESOLVED_FOR_MS = 5 * 60_000
"""How long a resolved alert is still sent to an Alertmanager. Prometheus does the same."""

GIVEN_UP_MS = 24 * 3_600_000
"""How long after it was resolved an alert is still sent to a receiver that has not accepted it."""


def updated_alerts(
    rows: Iterable[AlertRow], verdicts: Sequence[AlertEvaluation], now_ms: int, link: Callable[[Alert], str]
) -> list[AlertRow]:
    """Return the rows after the verdicts: open alerts continue, change severity or end, and new alerts are added.

    Rows of clusters without a verdict do not change. An alert that holds again with the same start reopens its row.
    """
    table = {key_of(row): row.copy() for row in rows}
    holding = {(v.cluster, a.name, a.subject): a for v in verdicts for a in v.alerts}
    unknown = {(v.cluster, name) for v in verdicts for name in v.unknown}
    judged = {v.cluster for v in verdicts}
    for row in table.values():
        if row["resolved_at"] is not None or row["cluster"] not in judged:
            continue
        alert = holding.pop((row["cluster"], AlertName(row["alert_name"]), row["subject"]), None)
        if alert is not None:
            _go_on(row, alert)
        elif (row["cluster"], row["alert_name"]) not in unknown:
            row["resolved_at"], row["sent_to"], row["last_error"] = now_ms, [], None
    for alert in holding.values():
        row = _raised(alert, now_ms, link)
        again = table.get(key_of(row))
        if again is not None:
            # It is the same incident, so its history and its link are kept.
            row["raised_at"], row["last_sent_at"] = again["raised_at"], again["last_sent_at"]
            row["dashboard_url"] = again["dashboard_url"]
        table[key_of(row)] = row
    return list(table.values())


def key_of(row: AlertRow) -> tuple[str, str, str, int]:
    """Return the row's key in the table."""
    return row["cluster"], row["alert_name"], row["subject"], row["started_at"]


def _go_on(row: AlertRow, alert: Alert) -> None:
    row["summary"], row["description"], row["evidence"] = alert.summary, alert.description, alert.evidence
    if alert.severity is AlertSeverity.PAGE and row["severity"] != AlertSeverity.PAGE:
        row["severity"], row["sent_to"] = AlertSeverity.PAGE, []


def _raised(alert: Alert, now_ms: int, link: Callable[[Alert], str]) -> AlertRow:
    return {
        "cluster": alert.cluster,
        "alert_name": alert.name,
        "subject": alert.subject,
        "started_at": alert.started_ms,
        "severity": alert.severity,
        "summary": alert.summary,
        "description": alert.description,
        "evidence": alert.evidence,
        "dashboard_url": link(alert),
        "raised_at": now_ms,
        "last_sent_at": None,
        "sent_to": [],
        "resolved_at": None,
        "last_error": None,
    }


def is_due(row: AlertRow, receiver: str, now_ms: int, resend_ms: int | None) -> bool:
    """Return whether the alert must be sent to the receiver (again). `resend_ms` None: each state is sent once."""
    resolved = row["resolved_at"]
    if receiver not in row["sent_to"]:
        return resolved is None or now_ms - resolved <= GIVEN_UP_MS
    if resend_ms is None or (resolved is not None and now_ms - resolved > RESOLVED_FOR_MS):
        return False
    return row["last_sent_at"] is None or now_ms - row["last_sent_at"] >= resend_ms


def after_sending(row: AlertRow, outcomes: Mapping[str, str | None], now_ms: int) -> AlertRow:
    """Return the row after it was sent. `outcomes` maps receivers to None if they accepted it, else to the error."""
    if not outcomes:
        return row.copy()
    took = {name for name, error in outcomes.items() if error is None}
    failed = {name: error for name, error in outcomes.items() if error is not None}
    sent_to = sorted((set(row["sent_to"]) | took) - failed.keys())
    errors = "; ".join(f"{name}: {error}" for name, error in sorted(failed.items()))
    return {
        **row,
        "sent_to": sent_to,
        "last_sent_at": now_ms if took else row["last_sent_at"],
        "last_error": errors or None,
    }
