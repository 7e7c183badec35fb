"""Limits on the processor time of a test, measured without the effects of other programs and of garbage collection."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

RUNS = 3
"""Runs of which the fastest counts."""

Found = TypeVar("Found")


def timed(work: Callable[[], Found]) -> tuple[float, Found]:
    """Return this thread's processor time in seconds and the result, without collections of other objects' garbage."""
    gc.disable()
    try:
        began = time.thread_time()
        found = work()
        return time.thread_time() - began, found
    finally:
        gc.enable()


def within(seconds: float, work: Callable[[], Found]) -> Found:
    """Return the result of `work()`; an assertion fails unless one of three runs took less of this thread's time."""
    took: list[float] = []
    for _ in range(RUNS):
        spent, found = timed(work)
        if spent < seconds:
            return found
        took.append(spent)
    raise AssertionError(f"{min(took):.2f} s of the processor, not less than {seconds} s")
