"""The log records of an alert: one when it is raised or becomes more severe, and one when it is resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.telemetry.cause_spans import storm_link
from pipelines.telemetry.span import Value, attributes, nanoseconds, trace_id
from schemas.states import AlertName, AlertSeverity

Row = Mapping[str, Any]
ERROR, WARN, INFO = 17, 13, 9
"""Severity numbers of OpenTelemetry's data model of logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRecord:
    """A log record. `key` is the same for the same state of an alert; `link` are a trace id and a span id."""

    key: str
    at_ns: int
    severity: int
    severity_text: str
    body: str
    attributes: Mapping[str, Value]
    link: tuple[int, int] | None = None


def alert_records(row: Row, storms: Sequence[Row] = ()) -> Iterator[AlertRecord]:
    """Yield the records of a row of `alerts`, timestamps in milliseconds. `storms` are rows of its cluster."""
    severity = ERROR if row["severity"] == AlertSeverity.PAGE else WARN
    yield _record(row, "firing", row["raised_at"], severity, storms)
    if row["resolved_at"] is not None:
        yield _record(row, "resolved", row["resolved_at"], INFO, storms)


def _record(row: Row, state: str, at: int, severity: int, storms: Sequence[Row]) -> AlertRecord:
    key = (row["cluster"], row["alert_name"], row["subject"], row["started_at"], state, severity)
    mine = [s for s in storms if row["alert_name"] == AlertName.REBALANCE_STORM and _is_about(row, s)]
    return AlertRecord(
        key=f"{trace_id('alert', *key):032x}",
        at_ns=nanoseconds(at),
        severity=severity,
        severity_text="INFO" if severity == INFO else str(row["severity"]),
        body=row["summary"],
        attributes=attributes(
            {
                "messaging.system": "kafka",
                "regroup.cluster": row["cluster"],
                "regroup.alert.name": row["alert_name"],
                "regroup.alert.subject": row["subject"],
                "regroup.alert.state": state,
                "regroup.alert.severity": row["severity"],
                "regroup.alert.started_at_ms": row["started_at"],
                "regroup.alert.url": row["dashboard_url"],
                "regroup.evidence": row["evidence"],
            }
        ),
        link=storm_link(mine[0]) if len(mine) == 1 else None,
    )


def _is_about(row: Row, storm: Row) -> bool:
    is_same = row["cluster"] == storm["cluster"] and row["started_at"] == storm["started_at"]
    return is_same and (not row["subject"] or row["subject"] in (storm["group_ids"] or ()))
