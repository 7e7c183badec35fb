"""A limit for requests per reader: so many at once, and further ones per second. Memory is bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from math import ceil
from threading import Lock
from time import monotonic

from dashboards.web.attempts import KEPT


class RateLimit:
    """The requests that each reader has left. Thread-safe. The least recently seen readers are forgotten."""

    def __init__(self, burst: int, per_second: float, clock: Callable[[], float] = monotonic) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._lock = Lock()
        self._left: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def wait_s(self, reader: object) -> int:
        """Count a request of the reader and return 0, or return the seconds to wait for the next one."""
        with self._lock:
            now = self._clock()
            left, since = self._left.pop(reader, (float(self._burst), now))
            left = min(self._burst, left + (now - since) * self._per_second)
            wait = 0 if left >= 1 else ceil((1 - left) / self._per_second)
            self._left[reader] = (left if wait else left - 1, now)
            if len(self._left) > KEPT:
                self._left.popitem(last=False)
            return wait
