"""Waiting for conditions, never for time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], seconds: float = 300.0) -> None:
    """Return once `holds()` is true; a failed assertion after so many seconds: a busy machine may take long."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"not so within {seconds:.0f} s: {getattr(holds, '__name__', holds)}"
        time.sleep(0.05)


def at_once(count: int, act: Callable[[], object]) -> None:
    """Call `act` in this number of threads that begin at the same time, and return when all have ended."""
    together = threading.Barrier(count)

    def start() -> None:
        together.wait()
        act()

    threads = [threading.Thread(target=start) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
