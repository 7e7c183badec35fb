"""What Prometheus may scrape: a few series per cluster, and those of the groups that lost most.

The number of series does not grow with the number of groups: `metrics_groups` of them, alike in every cluster, have
series of their own.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dashboards.lake import Lake, Parameter
from jobs import alert_queries as sql
from jobs.delivery import Delivery
from jobs.exposition import CONTENT_TYPE, Metric, exposition
from pipelines.gold.alerts.alert import Facts
from schemas.states import AlertName, AlertSeverity

LOOPBACK = "127.0.0.1"
MOST = 1_000
Row = Mapping[str, Any]
Samples = dict[tuple[str, ...], float]


def metrics(
    lake: Lake, facts: Sequence[Facts], alerts: Sequence[Row], delivery: Delivery, *, now_ms: int, groups: int
) -> list[Metric]:
    """Every metric, also those without samples."""
    return [*_of_notify(alerts, delivery, facts, now_ms), *_of_clusters(lake, facts), *_of_groups(lake, groups)]


def _of_notify(alerts: Sequence[Row], delivery: Delivery, facts: Sequence[Facts], now_ms: int) -> list[Metric]:
    raised = Counter(
        (r["cluster"], str(r["alert_name"]), str(r["severity"])) for r in alerts if r["resolved_at"] is None
    )
    possible = {(f.cluster, str(name), str(how)) for f in facts for name in AlertName for how in AlertSeverity}
    return [
        Metric(
            name="regroup_last_evaluation_timestamp_seconds",
            kind="gauge",
            help="When alerts were evaluated last",
            samples={(): now_ms / 1000},
        ),
        Metric(
            name="regroup_open_alerts",
            kind="gauge",
            help="Alerts that are raised and not resolved",
            labels=("cluster", "alert", "severity"),
            samples={key: raised[key] for key in possible | set(raised)},
        ),
        Metric(
            name="regroup_alerts_taken_total",
            kind="counter",
            help="Alerts that a receiver took, repetitions included",
            labels=("receiver",),
            samples=_by_one(delivery.taken),
        ),
        Metric(
            name="regroup_alerts_not_taken_total",
            kind="counter",
            help="Alerts that a receiver did not take, repetitions included",
            labels=("receiver",),
            samples=_by_one(delivery.failed),
        ),
        Metric(
            name="regroup_receiver_up",
            kind="gauge",
            help="1 where the receiver took what was sent last, else 0",
            labels=("receiver",),
            samples=_by_one(delivery.is_up),
        ),
    ]


def _of_clusters(lake: Lake, facts: Sequence[Facts]) -> list[Metric]:
    known: Samples = {(f.cluster,): f.sight.known_until_ms / 1000 for f in facts if f.sight.known_until_ms is not None}
    unread: Samples = {(f.cluster,): f.sight.unread for f in facts if f.sight.unread is not None}
    sums = _rows(lake, sql.SUMS, "group_health")
    moving = _rows(lake, sql.REASSIGNMENTS, "reassignments")
    states = _rows(lake, sql.STATES, "groups")

    def gauge(name: str, told: str, samples: Samples, labels: tuple[str, ...] = ("cluster",)) -> Metric:
        return Metric(name=name, kind="gauge", help=told, labels=labels, samples=samples)

    def counter(name: str, told: str, column: str) -> Metric:
        samples: Samples = {(row["cluster"],): row[column] for row in sums}
        return Metric(name=name, kind="counter", help=told, labels=("cluster",), samples=samples)

    storms: Samples = {(f.cluster,): len(f.storms) for f in facts}
    stuck: Samples = {
        (f.cluster,): max([0, *(f.now_ms - row["open_rebalance_since_at"] for row in f.rebalancing)]) / 1000
        for f in facts
    }
    return [
        gauge("regroup_known_until_timestamp_seconds", "Up to when the history of a cluster is known", known),
        gauge("regroup_unread_records", "Records of __consumer_offsets that wait to be read", unread),
        gauge("regroup_open_storms", "Storms that are open", storms),
        gauge("regroup_oldest_open_rebalance_seconds", "For how long the oldest open rebalance has been", stuck),
        gauge("regroup_groups", "Groups by state", _by_state(states), ("cluster", "state")),
        gauge("regroup_reassignments", "Reassignments under way, by state", _by_state(moving), ("cluster", "state")),
        counter("regroup_rebalances_total", "Rebalances that completed", "rebalances"),
        counter("regroup_lost_resource_seconds_total", "Resource-seconds lost, best estimate", "lost"),
        counter("regroup_owned_resource_seconds_total", "Resource-seconds of hours with a rebalance", "owned"),
    ]


def _of_groups(lake: Lake, groups: int) -> list[Metric]:
    rows = _rows(lake, sql.MOST_LOST, "group_health", most=groups)
    told = {
        "regroup_group_lost_resource_seconds": ("lost", "Resource-seconds lost in the last 24 hours of the cluster"),
        "regroup_group_rebalances": ("rebalances", "Rebalances in the last 24 hours of the cluster"),
        "regroup_group_flapping_members": ("flapping", "Most flapping instances in an hour of the last 24"),
    }
    return [
        Metric(
            name=name,
            kind="gauge",
            help=f"{text}, of the groups that lost most",
            labels=("cluster", "group"),
            samples={(row["cluster"], row["group_id"]): row[column] for row in rows},
        )
        for name, (column, text) in told.items()
    ]


def _by_one(found: Mapping[str, float]) -> Samples:
    return {(name,): float(value) for name, value in found.items()}


def _by_state(rows: Sequence[Row]) -> Samples:
    return {(row["cluster"], row["state"] or "Unknown"): row["found"] for row in rows}


def _rows(lake: Lake, query: str, table: str, **told: Parameter) -> list[dict[str, Any]]:
    return lake.query(query, [table], MOST, told).rows


class MetricsServer:
    """`GET /metrics` on loopback; the text is made by whoever evaluates, a scrape costs nothing."""

    def __init__(self, port: int) -> None:
        """Listen on the port, any for 0.

        Raises:
            OSError: the port is taken.
        """
        self.text = ""
        self._server = ThreadingHTTPServer((LOOPBACK, port), _handler(lambda: self.text))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def show(self, found: Iterable[Metric]) -> None:
        self.text = exposition(found)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """A scrape is no news."""

    return Handler
