"""`storms` beside the batches of `up`: looked for in a process of its own as often as it comes round.

Of thousands of groups that all shake it takes seconds. What it reads is silver as it stood between two batches.
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
"""Alerts hang on it, silver does not."""


@dataclass(slots=True, kw_only=True)
class StormThread(WorkerThread):
    """A thread that keeps `storms`; `building` is held while it is chosen what of silver is read, and `on_found` is
    called after each look.
    """

    spark: SparkSession
    settings: Settings
    building: AbstractContextManager[object]
    on_found: Callable[[], None]
    _woken: threading.Event = field(default_factory=threading.Event)

    def wake(self) -> None:
        """There is something new in silver."""
        self._woken.set()

    def go_on(self, stopped: threading.Event) -> None:
        warehouse = self.settings.warehouse.absolute()
        create_tables(self.spark, warehouse, (STORMS,))
        # What an earlier run left is looked at too.
        self.wake()
        with WorkerProcess(scan_as_of, nicer=NICER) as beside:
            while not stopped.is_set():
                if not self._woken.wait(1):
                    continue
                self._woken.clear()
                with self.building:
                    seen = versions(warehouse, (*SILVER, MARKS))
                store(self.spark, warehouse, beside.ask(warehouse, seen))
                self.on_found()


def scan_as_of(warehouse: Path, seen: Versions) -> Update:
    """`storms.scan` at silver and marks as they were in these versions."""
    with as_of(seen):
        return scan(warehouse)
