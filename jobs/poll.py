"""`regroup poll`: store observations from the Admin API in `admin_observations`, and build reassignments from them."""

from __future__ import annotations

import json
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config import terminal
from jobs.config.errors import UserError
from jobs.kafka.admin_poll import PERMISSIONS, Poller
from jobs.kafka.kafka_client import cluster_id
from jobs.processes.worker_thread import WorkerThread
from jobs.silver.build_reassignments import rebuild_affected_reassignments
from jobs.spark.spark import session_of
from jobs.tables.append import Once, append
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import claim, read
from jobs.tables.new_rows import NewRows
from pipelines.coverage import Span
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, COVERAGE
from schemas.silver import REASSIGNMENT_TABLES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from jobs.config.clusters import Cluster
    from jobs.config.settings import Settings
    from jobs.kafka.admin_poll import Observation
    from schemas.tables import Table

SOURCE = "poll"
"""`coverage.source` of polls. Offsets in these rows are milliseconds since the epoch."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Poll every cluster until stopped; with `--once`, poll each cluster once.

    Raises:
        UserError: no cluster is configured or reachable, or the warehouse belongs to another cluster.
    """
    if not settings.clusters:
        raise UserError(
            "No Kafka cluster is configured: give --bootstrap-servers HOST:PORT, or --config with [clusters]."
        )
    for cluster in settings.clusters:
        claim(settings.warehouse, cluster.name, cluster_id(cluster.client()))
    spark = session_of(settings, "poll")
    create_tables(spark, settings.warehouse, (*BRONZE, *REASSIGNMENT_TABLES))
    if args.once:
        for following in _follow(spark, settings, terminal.say, threading.Lock()):
            following.once()
        return 0
    stopped = threading.Event()
    followed = start(spark, settings, stopped, say=terminal.say, building=threading.Lock())
    try:
        while not stopped.wait(1):
            for following in followed:
                following.raise_failure()
    finally:
        stopped.set()
        for following in followed:
            following.join()
    return 0


def start(
    spark: SparkSession,
    settings: Settings,
    stopped: threading.Event,
    *,
    say: Callable[[str], None],
    building: AbstractContextManager[object],
    on_topics: Callable[[NewRows], None] | None = None,
    failing: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> list[Following]:
    """Poll each cluster in its own thread until `stopped`.

    `building` is held while reassignments are built, and while `on_topics` gets new observations of topics. A failure
    is raised within `failing`.

    Raises:
        UserError: a cluster is not reachable, or kafka-python has no counterpart of an option.
    """
    followed = _follow(spark, settings, say, building)
    for following in followed:
        following.on_topics, following.failing = on_topics, failing
        following.start(stopped)
    return followed


def _follow(
    spark: SparkSession, settings: Settings, say: Callable[[str], None], building: AbstractContextManager[object]
) -> list[Following]:
    return [
        Following(
            spark=spark,
            settings=settings,
            cluster=cluster,
            poller=Poller(cluster.client(), settings.limits),
            say=say,
            building=building,
        )
        for cluster in settings.clusters
    ]


@dataclass(slots=True, kw_only=True)
class Following(WorkerThread):
    """The polls of one cluster and their rows. `say` gets one sentence for each missing permission."""

    spark: SparkSession
    settings: Settings
    cluster: Cluster
    poller: Poller
    building: AbstractContextManager[object]
    say: Callable[[str], None]
    on_topics: Callable[[NewRows], None] | None = None
    _app_id: str = field(default_factory=lambda: f"poll-{uuid.uuid4().hex}")
    _version: int = 0
    _pending: list[Observation] = field(default_factory=list)
    _spans: list[Span] = field(default_factory=list)
    _read_until: int | None = None
    _named: set[str] = field(default_factory=set)
    _is_idle: bool = False

    def go_on(self, stopped: threading.Event) -> None:
        """Poll until `stopped`. Rows are written in a separate thread, so that polls keep their interval."""
        writing: Future[None] | None = None
        written = float("-inf")
        try:
            with ThreadPoolExecutor(1) as writer:
                while not stopped.is_set():
                    began = time.monotonic()
                    self.poll()
                    if (writing is None or writing.done()) and began - written >= self.settings.trigger_seconds:
                        if writing is not None:
                            writing.result()
                        writing, written = writer.submit(self.write, *self._take_pending()), began
                    stopped.wait(max(0.0, self.poller.pause_s - (time.monotonic() - began)))
                writer.submit(self.write, *self._take_pending()).result()
        finally:
            self.poller.close()

    def once(self) -> None:
        """Poll once and write the rows."""
        try:
            self.poll()
            self.write(*self._take_pending())
        finally:
            self.poller.close()

    def poll(self) -> None:
        """Poll the cluster once and keep the observations until they are written."""
        began = _now_ms()
        if self._read_until is None:
            self._read_until = began
            if (before := self._last_poll()) is not None:
                self._spans.append(_span(before, began, gap="nobody polled"))
        self._pending += (seen := self.poller.poll())
        for call, why in self.poller.errors.items():
            self._name(call, why)
        failed = self.poller.errors.get("describe_cluster")
        span = _span(self._read_until, _now_ms(), gap=f"no broker answered: {failed}" if failed else None)
        span.records = 0 if failed else len(seen)
        self._spans.append(span)
        self._read_until = span.to_offset

    def _take_pending(self) -> tuple[list[Observation], list[Span]]:
        pending = self._pending, _joined(self._spans)
        self._pending, self._spans = [], []
        return pending

    def write(self, seen: list[Observation], spans: list[Span]) -> None:
        """Write the observations once; then rebuild the reassignments that they affect."""
        self._version += 1
        new = self._append(ADMIN_OBSERVATIONS, [observation_row(self.cluster.name, each) for each in seen])
        # Last, because a row of coverage says that the observations are in the table.
        self._append(COVERAGE, [span.row(self.cluster.name, SOURCE) for span in spans])
        if seen and self._bears_on_reassignments(seen):
            with self.building:
                rebuild_affected_reassignments(self.spark, self.settings.warehouse, {ADMIN_OBSERVATIONS: new})
                if self.on_topics and any(each["kind"] == "topic" for each in seen):
                    self.on_topics(new)

    def _bears_on_reassignments(self, seen: list[Observation]) -> bool:
        """Return whether observations can change reassignments: an empty list after an empty list cannot."""
        was_idle, self._is_idle = self._is_idle, not any(each.get("ongoing") for each in seen)
        return not (was_idle and self._is_idle) or any(each["kind"] == "topic" for each in seen)

    def _append(self, table: Table, rows: list[dict[str, Any]]) -> NewRows:
        new = NewRows.of(table, rows)
        if rows:
            append(self.spark, self.settings.warehouse, new, Once(self._app_id, self._version))
        return new

    def _last_poll(self) -> int | None:
        """Return the end of this cluster's last poll in ms since the epoch, or None if there is none."""
        spans = read(self.spark, self.settings.warehouse, COVERAGE)
        mine = spans.where((F.col("cluster") == self.cluster.name) & (F.col("source") == SOURCE))
        found = mine.agg(F.max("to_offset")).first()
        return None if found is None or found[0] is None else int(found[0])

    def _name(self, call: str, why: str) -> None:
        name = call.partition(" ")[0]
        if name in self._named:
            return
        self._named.add(name)
        needs = PERMISSIONS.get(name)
        advice = f": grant {needs}" if needs and "uthoriz" in why else ""
        self.say(f"The poll of {self.cluster.name} skips {call} ({why}){advice}.")


def observation_row(cluster: str, seen: Observation) -> dict[str, Any]:
    """Return an observation as a row of `admin_observations`."""
    subject = seen.get("group_id") or seen.get("topic") or seen.get("broker") or seen.get("call") or ""
    return {
        "cluster": cluster,
        "observed_at": datetime.fromtimestamp(seen["observed_at_ms"] / 1000, UTC),
        "source": seen["source"],
        "kind": seen["kind"],
        "subject": f"{subject} {seen.get('subject', '')}".strip(),
        "body": json.dumps(seen, separators=(",", ":")),
    }


def _span(start: int, end: int, *, gap: str | None) -> Span:
    return Span(
        partition=-1, log_epoch=0, from_offset=start, to_offset=end, gap_reason=gap, first_ms=start, last_ms=end
    )


def _joined(spans: list[Span]) -> list[Span]:
    """Merge adjacent spans with the same gap reason, so that coverage has one row per write, not per poll."""
    out: list[Span] = []
    for span in spans:
        if out and out[-1].gap_reason == span.gap_reason and out[-1].to_offset == span.from_offset:
            out[-1].to_offset, out[-1].last_ms = span.to_offset, span.last_ms
            out[-1].records += span.records
        else:
            out.append(span)
    return out


def _now_ms() -> int:
    return int(time.time() * 1000)
