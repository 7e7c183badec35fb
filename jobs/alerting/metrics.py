"""The Prometheus metrics: a few series per cluster, and series of the groups that lost most.

The number of series does not grow with the number of groups. In every cluster, the same number of groups
(`metrics_groups`) have their own series.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.lake.lake import Lake, Parameter
from jobs.alerting import alert_queries as sql
from jobs.alerting.delivery import Delivery
from jobs.alerting.exposition import Metric
from jobs.alerting.otlp.trace_sender import TraceSender
from jobs.alerting.weekly.weekly_reports import WeeklyReports
from jobs.config.settings import Settings
from pipelines.gold.alerts.alert import Facts
from pipelines.gold.alerts.clusters import open_storms
from schemas.states import AlertName, AlertSeverity

MOST = 1_000
Row = Mapping[str, Any]
Samples = dict[tuple[str, ...], float]


def metrics(
    lake: Lake,
    facts: Sequence[Facts],
    alerts: Sequence[Row],
    delivery: Delivery,
    *,
    now_ms: int,
    groups: int,
    reports: WeeklyReports | None = None,
    traces: TraceSender | None = None,
) -> list[Metric]:
    """Return every metric, including metrics without samples."""
    of_notify = [*_of_notify(alerts, delivery, facts, now_ms), *_of_reports(reports), *_of_traces(traces)]
    return [*of_notify, *_of_clusters(lake, facts), *_of_groups(lake, groups)]


def _of_reports(reports: WeeklyReports | None) -> list[Metric]:
    accepted, failed, is_up = ({}, {}, {}) if reports is None else (reports.accepted, reports.failed, reports.is_up)

    def of(name: str, kind: str, text: str, found: Mapping[str, float]) -> Metric:
        # A copy, because the thread of the reports may add a receiver meanwhile.
        return Metric(name=name, kind=kind, help=text, labels=("receiver",), samples=_by_one(dict(found)))

    return [
        of("regroup_reports_taken_total", "counter", "Weekly reports that a receiver accepted", accepted),
        of("regroup_reports_not_taken_total", "counter", "Attempts to send a weekly report that failed", failed),
        of("regroup_report_receiver_up", "gauge", "1 if the receiver accepted the last weekly report, else 0", is_up),
    ]


def _of_traces(traces: TraceSender | None) -> list[Metric]:
    outcomes: Samples = {}
    failed, rejected, up = (None,) * 3
    if traces is not None:
        outcomes = {(name,): float(found) for name, found in dict(traces.sent.counts).items()}
        failed, rejected, up = traces.failed, traces.rejected, traces.is_up

    def of(name: str, kind: str, text: str, value: float | None) -> Metric:
        return Metric(name=name, kind=kind, help=text, samples={} if value is None else {(): float(value)})

    text = "Traces that the collector accepted, that became too old before it could, or that it refused for good"
    rejected_text = "Spans that the collector rejected of requests that it accepted"
    failed_text = "Requests that the collector did not accept and that are sent again"
    return [
        Metric(name="regroup_otlp_traces_total", kind="counter", help=text, labels=("outcome",), samples=outcomes),
        of("regroup_otlp_spans_rejected_total", "counter", rejected_text, rejected),
        of("regroup_otlp_requests_failed_total", "counter", failed_text, failed),
        of("regroup_otlp_collector_up", "gauge", "1 if the collector accepted the last request, else 0", up),
    ]


def groups_named(settings: Settings) -> int:
    """Return how many groups of a cluster have their own series: none if [readers] limits who may see which groups.

    Scrapers are not authenticated, so they must not see names that are hidden from some readers.
    """
    return 0 if settings.readers else settings.metrics_groups


def _of_notify(alerts: Sequence[Row], delivery: Delivery, facts: Sequence[Facts], now_ms: int) -> list[Metric]:
    raised = Counter(
        (r["cluster"], str(r["alert_name"]), str(r["severity"])) for r in alerts if r["resolved_at"] is None
    )
    possible = {
        (f.cluster, str(name), str(severity)) for f in facts for name in AlertName for severity in AlertSeverity
    }
    return [
        Metric(
            name="regroup_last_evaluation_timestamp_seconds",
            kind="gauge",
            help="Time of the last evaluation of alerts",
            samples={(): now_ms / 1000},
        ),
        Metric(
            name="regroup_open_alerts",
            kind="gauge",
            help="Alerts that are firing",
            labels=("cluster", "alert", "severity"),
            samples={key: raised[key] for key in possible | set(raised)},
        ),
        Metric(
            name="regroup_alerts_taken_total",
            kind="counter",
            help="Alerts that a receiver accepted, including resends",
            labels=("receiver",),
            samples=_by_one(delivery.accepted),
        ),
        Metric(
            name="regroup_alerts_not_taken_total",
            kind="counter",
            help="Alerts that a receiver did not accept, including resends",
            labels=("receiver",),
            samples=_by_one(delivery.failed),
        ),
        Metric(
            name="regroup_receiver_up",
            kind="gauge",
            help="1 if the receiver accepted the last alerts sent, else 0",
            labels=("receiver",),
            samples=_by_one(delivery.is_up),
        ),
    ]


def _of_clusters(lake: Lake, facts: Sequence[Facts]) -> list[Metric]:
    known: Samples = {
        (f.cluster,): f.freshness.known_until_ms / 1000 for f in facts if f.freshness.known_until_ms is not None
    }
    unread: Samples = {(f.cluster,): f.freshness.unread for f in facts if f.freshness.unread is not None}
    sums = _rows(lake, sql.SUMS, "group_health")
    moving = _rows(lake, sql.REASSIGNMENTS, "reassignments")
    states = _rows(lake, sql.STATES, "groups")

    def gauge(name: str, text: str, samples: Samples, labels: tuple[str, ...] = ("cluster",)) -> Metric:
        return Metric(name=name, kind="gauge", help=text, labels=labels, samples=samples)

    def counter(name: str, text: str, column: str) -> Metric:
        samples: Samples = {(row["cluster"],): row[column] for row in sums}
        return Metric(name=name, kind="counter", help=text, labels=("cluster",), samples=samples)

    storms: Samples = {(f.cluster,): len(open_storms(f)) for f in facts}
    stuck: Samples = {
        (f.cluster,): max([0, *(until - row["open_rebalance_since_at"] for row in f.rebalancing)]) / 1000
        for f in facts
        if (until := f.freshness.known_until_ms) is not None
    }
    return [
        gauge("regroup_known_until_timestamp_seconds", "Time up to which the history of a cluster is known", known),
        gauge("regroup_unread_records", "Records of __consumer_offsets not yet read", unread),
        gauge("regroup_open_storms", "Open storms", storms),
        gauge("regroup_oldest_open_rebalance_seconds", "Age of the oldest open rebalance, as far as is known", stuck),
        gauge("regroup_groups", "Groups by state", _by_state(states), ("cluster", "state")),
        gauge("regroup_reassignments", "Reassignments in progress, by state", _by_state(moving), ("cluster", "state")),
        counter("regroup_rebalances_total", "Completed rebalances", "rebalances"),
        counter("regroup_lost_resource_seconds_total", "Resource-seconds lost, best estimate", "lost"),
        counter("regroup_owned_resource_seconds_total", "Resource-seconds of hours with a rebalance", "owned"),
    ]


def _of_groups(lake: Lake, groups: int) -> list[Metric]:
    rows = _rows(lake, sql.MOST_LOST, "group_health", most=groups)
    series = {
        "regroup_group_lost_resource_seconds": ("lost", "Resource-seconds lost in the last 24 hours of the cluster"),
        "regroup_group_rebalances": ("rebalances", "Rebalances in the last 24 hours of the cluster"),
        "regroup_group_flapping_members": ("flapping", "Most flapping instances in an hour of the last 24"),
    }
    return [
        Metric(
            name=name,
            kind="gauge",
            help=f"{text}, for the groups that lost most",
            labels=("cluster", "group"),
            samples={(row["cluster"], row["group_id"]): row[column] for row in rows},
        )
        for name, (column, text) in series.items()
    ]


def _by_one(found: Mapping[str, float]) -> Samples:
    return {(name,): float(value) for name, value in found.items()}


def _by_state(rows: Sequence[Row]) -> Samples:
    return {(row["cluster"], row["state"] or "Unknown"): row["found"] for row in rows}


def _rows(lake: Lake, query: str, table: str, **parameters: Parameter) -> list[dict[str, Any]]:
    return lake.query(query, [table], MOST, parameters).rows
