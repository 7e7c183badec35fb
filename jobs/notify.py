"""`regroup notify`: evaluate the alert rules, and send alerts to the receivers until the alerts are resolved.

It also sends the weekly report (`jobs.alerting.weekly`) and traces, metrics and log records (`jobs.alerting.otlp`).

An alert is stored in `alerts` before it is sent, and its receivers are stored after it is sent. A crash between the two
therefore repeats a message and loses none.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

from jobs.alerting import alert_table
from jobs.alerting.alert_facts import FactReader, Watch
from jobs.alerting.alert_links import dashboard_url
from jobs.alerting.delivery import AT_LAST_S, PATIENCE_S, Delivery, Due
from jobs.alerting.metrics import groups_named, metrics
from jobs.alerting.metrics_server import MetricsServer, metrics_token
from jobs.alerting.otlp.senders import OtlpSenders
from jobs.alerting.weekly.weekly_reports import WeeklyReports
from jobs.config.errors import UserError, one_line
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.kafka.topic_watch import TopicWatch
from jobs.processes.process_lock import acquire
from jobs.spark.spark import tables_of
from jobs.spark.spark_lake import lake_of
from jobs.tables.table_facts import exists
from pipelines.gold.alerts.alert import AlertLimits, Facts
from pipelines.gold.alerts.incidents import key_of, updated_alerts
from pipelines.gold.alerts.rules import evaluate
from schemas.gold import ALERTS
from schemas.rows import AlertRow
from schemas.silver import GROUPS

CELLS = 50_000
"""Cells of query results to cache. The cache serves one round only, because the next round queries other versions."""

STALE_SECONDS = 5.0
"""Highest age of the tables' versions that a round may use if only Spark reads the tables. The round checks the version
of each table."""

Kept = Literal["severity", "resolved_at", "sent_to", "last_sent_at", "last_error"]
KEPT: tuple[Kept, ...] = get_args(Kept)
"""Columns whose change is stored at once. A change of the texts is stored when they are sent to a receiver."""

MOST_SHARE = 0.1
"""Highest share of the time for rounds, because they delay batches. The pause after a round is at most
`notify_seconds`, so long rounds exceed this share.
"""

WAIT_S = 2.0
"""Seconds between two checks for a table that another process creates."""

Say = Callable[[str], None]


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Evaluate and send until stopped; with `--once`, only once, and return 1 if a receiver was not reached.

    Without `--once`, wait for the table if another process has not created it yet.

    Raises:
        UserError: the warehouse has no silver table (with `--once`), or another process sends the alerts of this
            warehouse.
    """
    if not exists(settings.warehouse, GROUPS):
        missing = (
            f"The warehouse {settings.warehouse} has no table {GROUPS.name} yet: run `regroup build` or "
            "`regroup up` first, or name another with --warehouse."
        )
        if args.once:
            raise UserError(missing)
        say(f"{missing} Waiting for it.")
        while not exists(settings.warehouse, GROUPS):
            time.sleep(WAIT_S)
    notifier = Notifier(settings, say=say, is_single=args.once)
    with acquire(settings.warehouse, "notify"):
        if args.once:
            for watched in notifier.watched:
                watched.ask()
            is_accepted = notifier.round()
            is_sent = notifier.reports is None or notifier.reports.round(time.time_ns() // 1_000_000)
            is_exported = notifier.otlp.send_once(time.time_ns() // 1_000_000)
            return 0 if is_accepted and is_sent and is_exported else 1
        Notifying(notifier=notifier).until(threading.Event())
    return 0


@dataclass(slots=True)
class Notifying:
    """A notifier in a thread: it runs a round after every `wake`, and otherwise every `notify_seconds`."""

    notifier: Notifier
    _woken: threading.Event = field(default_factory=threading.Event)

    def start(self, stopped: threading.Event) -> None:
        threading.Thread(target=self.until, args=[stopped], daemon=True).start()

    def wake(self) -> None:
        """Request a round, because the tables have new rows."""
        self._woken.set()

    def until(self, stopped: threading.Event) -> None:
        """Run rounds until `stopped`. A failed round is reported and retried; no other work depends on it."""
        settings = self.notifier.settings
        self.notifier.serve_metrics()
        for watched in self.notifier.watched:
            watched.start(stopped, settings.notify_seconds)
        if self.notifier.reports is not None:
            self.notifier.reports.start(stopped)
        self.notifier.otlp.start(stopped)
        while not stopped.is_set():
            began = time.monotonic()
            try:
                self.notifier.round()
            except Exception as error:  # noqa: BLE001 - the next round may succeed, and a metric shows that none did
                if not stopped.is_set():
                    self.notifier.say(f"Alerts were not evaluated and will be retried: {one_line(error)}")
            took = time.monotonic() - began
            rest = min(settings.notify_seconds, took / MOST_SHARE - took)
            stopped.wait(rest)
            self._woken.wait(settings.notify_seconds - rest)
            self._woken.clear()


class Notifier:
    """The evaluation of alert rules, the table `alerts` and the receivers. One per warehouse."""

    def __init__(self, settings: Settings, *, say: Say, is_single: bool = False) -> None:
        """Prepare the receivers and create the table `alerts`. `is_single`: it runs one round only, so it keeps no
        watch.

        Raises:
            UserError: a secret is missing at the place that the settings name, or anybody could read the metrics.
        """
        for cluster in settings.clusters:
            cluster.client()
        for hook in settings.webhooks:
            hook.key()
        self._metrics_token = metrics_token(settings)
        self.settings = settings
        self.say = say
        self.watched = [TopicWatch(cluster) for cluster in settings.clusters]
        self._limits = AlertLimits(
            stuck_ms=round(settings.stuck_seconds * 1000),
            stale_ms=settings.stale_ms,
            availability=settings.availability_target,
        )
        self._lake = lake_of(settings.warehouse, stale_seconds=STALE_SECONDS, cells=CELLS, keeps_files=False)
        self._reading = FactReader(
            lake=self._lake, warehouse=settings.warehouse, limits=self._limits, watch=None if is_single else Watch()
        )
        self.delivery = Delivery(settings=settings, say=say, patience_s=AT_LAST_S if is_single else PATIENCE_S)
        self._server: MetricsServer | None = None
        self._unread: dict[str, str] = {}
        self._tables = tables_of(settings, "notify")
        self._tables.ensure(ALERTS)
        self.reports = self._weekly()
        self.otlp = OtlpSenders.of(settings, partial(lake_of, settings.warehouse), say)

    def _weekly(self) -> WeeklyReports | None:
        """Return the sender of the weekly report; None without the section [report]."""
        if self.settings.report is None:
            return None
        warehouse = self.settings.warehouse
        found = WeeklyReports(
            settings=self.settings, tables=self._tables, open_lake=partial(lake_of, warehouse), say=self.say
        )
        found.check()
        return found

    def serve_metrics(self) -> None:
        """Start the metrics server. If its port is taken, report that and continue, because nothing else needs the
        port.
        """
        if not self.settings.metrics_port:
            return
        try:
            self._server = MetricsServer(
                self.settings.metrics_port, host=self.settings.metrics_host, token=self._metrics_token
            )
        except OSError as error:
            where = f"port {self.settings.metrics_port} of {self.settings.metrics_host}"
            self.say(f"Metrics are not served: {where} is not free ({error.strerror}).")

    def round(self) -> bool:
        """Evaluate once and send all due alerts; return whether every receiver accepted them."""
        now = time.time_ns() // 1_000_000
        known = alert_table.current_alerts(self._lake, now, now)
        raised = {(r["cluster"], r["alert_name"], r["subject"]) for r in known if r["resolved_at"] is None}
        facts = [found for cluster in self._clusters() if (found := self._facts(cluster, now, raised))]
        verdicts = [evaluate(each, self._limits) for each in facts]
        oldest = min((alert.started_ms for v in verdicts for alert in v.alerts), default=now)
        before = alert_table.current_alerts(self._lake, now, min(oldest, now))
        after = self.delivery.with_outcomes(
            updated_alerts(before, verdicts, now, partial(dashboard_url, self.settings)), now
        )
        due = self.delivery.due(after, now)
        rows = _worth_keeping(before, after, due)
        # Stored before sending, because an alert that is sent but not stored could never be resolved.
        alert_table.save(self._tables, before, rows)
        sent = self.delivery.send(rows, due, now)
        alert_table.save(self._tables, rows, sent)
        if self._server or self.otlp.metrics:
            self._measure(facts, sent, now)
        return all(self.delivery.is_up.values())

    def _measure(self, facts: Sequence[Facts], alerts: Sequence[AlertRow], now: int) -> None:
        found = metrics(
            self._lake,
            facts,
            alerts,
            self.delivery,
            now_ms=now,
            groups=groups_named(self.settings),
            reports=self.reports,
            traces=self.otlp.traces,
        )
        if self._server:
            self._server.show(found)
        if self.otlp.metrics:
            self.otlp.metrics.show(found, now)

    def _clusters(self) -> list[str]:
        return sorted({*self._reading.clusters(), *(cluster.name for cluster in self.settings.clusters)})

    def _facts(self, cluster: str, now: int, raised: Iterable[tuple[str, str, str]]) -> Facts | None:
        """Return the facts of a cluster, or None if its tables cannot be read.

        Without facts, the cluster's alerts do not change, and raised alerts are sent again.
        """
        asked = next((watched.last for watched in self.watched if watched.cluster.name == cluster), None)
        mine = {(name, subject) for of, name, subject in raised if of == cluster}
        try:
            found = self._reading.facts(cluster, now, asked, mine)
        except Exception as error:  # noqa: BLE001 - whatever a broken or half-written table raises
            if self._unread.get(cluster) != (why := one_line(error)):
                self._unread[cluster] = why
                self.say(f"No alert of {cluster} is raised or resolved while its tables cannot be read: {why}")
            return None
        self._unread.pop(cluster, None)
        return found


def _worth_keeping(before: Sequence[AlertRow], after: Sequence[AlertRow], due: Due) -> list[AlertRow]:
    """Return `after` with the texts of `before` for alerts that are not sent now. Texts change with every record."""
    known = {key_of(row): row for row in before}
    sent_keys = {key_of(row) for rows in due.values() for row in rows}
    return [
        row if key_of(row) in sent_keys or _is_other(row, known.get(key_of(row))) else known[key_of(row)]
        for row in after
    ]


def _is_other(row: AlertRow, known: AlertRow | None) -> bool:
    return known is None or any(row[name] != known[name] for name in KEPT)
