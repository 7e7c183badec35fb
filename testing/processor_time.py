"""Bounds of processor time that neither other programs nor Python's garbage collector make a test exceed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

RUNS = 3
"""Runs of which the fastest counts."""

Found = TypeVar("Found")


def within(seconds: float, work: Callable[[], Found]) -> Found:
    """Return the result of `work()`; an assertion fails unless one of three runs took less of this thread's time.

    Only the thread's own processor time counts, without collections of the garbage of other tests.
    """
    took: list[float] = []
    for _ in range(RUNS):
        gc.disable()
        try:
            began = time.thread_time()
            found = work()
            took.append(time.thread_time() - began)
        finally:
            gc.enable()
        if took[-1] < seconds:
            return found
    raise AssertionError(f"{min(took):.2f} s of the processor, not less than {seconds} s")
