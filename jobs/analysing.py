"""Gold beside the batches of `up`: in parts, with rests between them, so that no batch waits long for either core.

Replaying what a lively group did takes longer than it does to happen, with many of them for hours. So each part is as
many groups as take some seconds, and the rest after it is longer than it was: groups come later, batches on time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from jobs.analyze import analyze_part
from jobs.delta_io import create_tables
from jobs.settings import Settings
from jobs.spark import for_few_rows
from pipelines.gold.frame import INPUTS
from schemas.gold import GROUP_TABLES

PART_S = 15.0
SHARE = 0.25
"""Of the time, as long as groups wait to be analysed."""

FIRST, LEAST, MOST = 50, 4, 500
"""Groups of a part."""


@dataclass(slots=True, kw_only=True)
class Analysing:
    """A thread that analyses; `building` is held while silver is read, which must not change meanwhile."""

    spark: SparkSession
    settings: Settings
    building: AbstractContextManager[object]
    failing: Callable[[], AbstractContextManager[object]]
    _failure: BaseException | None = None

    def start(self, stopped: threading.Event) -> None:
        threading.Thread(target=self._until, args=[stopped], name="analyze", daemon=True).start()

    def raise_failure(self) -> None:
        """Raises what ended the thread, if anything did."""
        if self._failure is not None:
            with self.failing():
                raise self._failure

    def _until(self, stopped: threading.Event) -> None:
        try:
            self._go_on(stopped)
        except BaseException as error:  # noqa: BLE001 - raised again where it can be told
            self._failure = error

    def _go_on(self, stopped: threading.Event) -> None:
        create_tables(self.spark, self.settings.warehouse, (*INPUTS, *GROUP_TABLES))
        spark = for_few_rows(self.spark, tasks=1)
        most, rest = FIRST, self.settings.analyze_seconds / 2
        while not stopped.wait(rest):
            began = time.monotonic()
            part = analyze_part(spark, self.settings, most=most, reading=self.building)
            took = time.monotonic() - began
            most, rest = following(part.analysed, part.left, took, self.settings.analyze_seconds)


def following(analysed: int, left: int, took: float, analyze_seconds: float) -> tuple[int, float]:
    """How many groups the next part is, and how long to rest before it."""
    most = min(MOST, max(LEAST, round(analysed * PART_S / took))) if analysed else FIRST
    return most, took / SHARE - took if left else max(analyze_seconds, took / SHARE - took)
