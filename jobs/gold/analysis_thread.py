"""Analysis within `up`, in parts with pauses between them, so that no batch waits long for a core.

Replaying a busy group takes longer than its events took to happen; with many such groups it lasts hours. So each part
has as many groups as take some seconds. Parts use the time that batches leave, and at least a quarter of all time.
Advice, which needs the replay, has a separate thread: health and diagnoses take a hundredth of its time and do not wait
for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from jobs.config.settings import Settings
from jobs.gold.analyze_part import Part, analyze_part
from jobs.gold.replaying import Replaying
from jobs.processes.worker_thread import WorkerThread
from jobs.spark.spark import for_few_rows
from jobs.tables.create_tables import needs_spark
from schemas.gold import ADVICE, DEPLOYS, DIAGNOSES, GROUP_HEALTH, PATTERNS, SETTING_CHANGES, VERDICTS
from schemas.silver import GENERATIONS
from schemas.tables import Table

PART_S = 10.0
"""Intended duration of a part in seconds."""

LEAST_SHARE = 0.25
"""Lowest share of the time for parts while groups wait for analysis, even if batches need all of it."""

FIRST, MOST = 1, 500
"""Lowest and highest number of groups in a part."""

QUICK, SLOW = (GROUP_HEALTH, DIAGNOSES, VERDICTS, DEPLOYS, PATTERNS), (ADVICE, SETTING_CHANGES)
"""Tables whose rows of one group are made together."""


@dataclass(slots=True)
class Building:
    """A lock for every writer of silver. `seconds` is the total time that it was held."""

    seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _since: float = 0.0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.monotonic() - self._since
        self._lock.release()


@dataclass(slots=True, kw_only=True)
class AnalysisThread(WorkerThread):
    """A thread that makes rows of `tables` in a worker process with `nicer` added to its niceness.

    It holds `building` while it fixes the versions of silver to read.
    """

    spark: SparkSession
    settings: Settings
    building: Building
    tables: Sequence[Table]
    nicer: int

    def go_on(self, stopped: threading.Event) -> None:
        spark = for_few_rows(self.spark, tasks=1)
        with Replaying(nicer=self.nicer) as replaying:
            is_here = not needs_spark(self.settings.warehouse, (GENERATIONS,))
            self._in_parts(stopped, spark, replaying if is_here else None)

    def _in_parts(self, stopped: threading.Event, spark: SparkSession, replaying: Replaying | None) -> None:
        most, rest = FIRST, self.settings.analyze_seconds / 2
        at, built = time.monotonic(), self.building.seconds
        while not stopped.wait(rest):
            began = time.monotonic()
            part = analyze_part(
                spark,
                self.settings,
                tables=self.tables,
                most=most,
                reading=self.building,
                replaying=replaying,
                with_storms=False,
            )
            ended = time.monotonic()
            busy = (self.building.seconds - built) / (ended - at)
            at, built = ended, self.building.seconds
            most, rest = next_part_size(part, ended - began), pause(ended - began, busy)
            rest = rest if part.left else max(self.settings.analyze_seconds, rest)


def next_part_size(part: Part, took: float) -> int:
    """Return the number of groups in the next part of the same tables."""
    return min(MOST, max(1, round(part.analysed * PART_S / took))) if part.analysed else FIRST


def pause(took: float, busy: float) -> float:
    """Return the seconds to pause after a part of `took` seconds. Silver was being written for the share `busy`."""
    return took / max(LEAST_SHARE, 1 - busy) - took
