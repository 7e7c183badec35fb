"""Updates `storms` and `cluster_patterns` within `up`, in a worker process, again and again.

A scan of storms takes seconds if thousands of groups rebalance. It reads silver in its versions between two batches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.config.settings import Settings
from jobs.gold.cluster_patterns import scan_clusters, store_cluster_patterns
from jobs.gold.storms import Update, scan, store
from jobs.processes.worker_process import WorkerProcess
from jobs.processes.worker_thread import WorkerThread
from jobs.tables.as_of import Versions, as_of, versions
from jobs.tables.create_tables import create_tables
from schemas.gold import CLUSTER_PATTERNS, MARKS, STORMS
from schemas.rows import ClusterPatternRow
from schemas.silver import SILVER

NICER = 5
"""Added niceness. Lower than that of advice, because alerts depend on storms."""

PATTERNS_S = 15.0
"""Seconds between two scans for patterns of clusters. Polls and log lines show some that write no record."""

RESTS = 10
"""Minimum pause after a scan for patterns, in multiples of its duration."""


@dataclass(slots=True, kw_only=True)
class StormThread(WorkerThread):
    """A thread that keeps `storms` and `cluster_patterns` up to date.

    It holds `building` while it fixes the versions of silver to read, and calls `on_found` after each scan.
    """

    spark: SparkSession
    settings: Settings
    building: AbstractContextManager[object]
    on_found: Callable[[], None]
    _woken: threading.Event = field(default_factory=threading.Event)

    def wake(self) -> None:
        """Request a scan, because silver has new rows."""
        self._woken.set()

    def go_on(self, stopped: threading.Event) -> None:
        warehouse = self.settings.warehouse.absolute()
        create_tables(self.spark, warehouse, (STORMS, CLUSTER_PATTERNS))
        # Scan once at the start, because an earlier run may have left changes.
        self.wake()
        due = 0.0
        with WorkerProcess(found_as_of, nicer=NICER) as worker:
            while not stopped.is_set():
                is_woken = self._woken.wait(1)
                is_due = time.monotonic() >= due
                if not (is_woken or is_due):
                    continue
                self._woken.clear()
                with self.building:
                    seen = versions(warehouse, (*SILVER, MARKS))
                if is_woken:
                    store(self.spark, warehouse, worker.ask(warehouse, seen, STORMS.name))
                if is_due:
                    began = time.monotonic()
                    found = worker.ask(warehouse, seen, CLUSTER_PATTERNS.name)
                    store_cluster_patterns(self.spark, warehouse, found)
                    due = time.monotonic() + max(PATTERNS_S, RESTS * (time.monotonic() - began))
                self.on_found()


def found_as_of(warehouse: Path, seen: Versions, table: str) -> Update | list[ClusterPatternRow]:
    """Return the scan for `storms` or for `cluster_patterns`, for silver and marks in these versions."""
    if table == STORMS.name:
        return scan_as_of(warehouse, seen)
    with as_of(seen):
        return scan_clusters(warehouse)


def scan_as_of(warehouse: Path, seen: Versions) -> Update:
    """Return `storms.scan` for silver and marks in these versions."""
    with as_of(seen):
        return scan(warehouse)
