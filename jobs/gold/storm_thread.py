"""Updates `storms` within `up`, in a worker process, again and again.

A scan takes seconds if thousands of groups rebalance. It reads silver in its versions between two batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.config.settings import Settings
from jobs.gold.storms import Update, scan, store
from jobs.processes.worker_process import WorkerProcess
from jobs.processes.worker_thread import WorkerThread
from jobs.tables.as_of import Versions, as_of, versions
from jobs.tables.create_tables import create_tables
from schemas.gold import MARKS, STORMS
from schemas.silver import SILVER

NICER = 5
"""Added niceness. Lower than that of advice, because alerts depend on storms."""


@dataclass(slots=True, kw_only=True)
class StormThread(WorkerThread):
    """A thread that keeps `storms` up to date.

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
        create_tables(self.spark, warehouse, (STORMS,))
        # Scan once at the start, because an earlier run may have left changes.
        self.wake()
        with WorkerProcess(scan_as_of, nicer=NICER) as worker:
            while not stopped.is_set():
                if not self._woken.wait(1):
                    continue
                self._woken.clear()
                with self.building:
                    seen = versions(warehouse, (*SILVER, MARKS))
                store(self.spark, warehouse, worker.ask(warehouse, seen))
                self.on_found()


def scan_as_of(warehouse: Path, seen: Versions) -> Update:
    """Return `storms.scan` for silver and marks in these versions."""
    with as_of(seen):
        return scan(warehouse)
