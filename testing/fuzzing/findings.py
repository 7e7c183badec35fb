"""Random inputs, passed one by one to a function that must read each or reject it in one sentence."""

from __future__ import annotations

import faulthandler
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from jobs.config.errors import UserError

T = TypeVar("T")
STUCK_S = 120.0
WARM_UP = 200
WATCHED_TOGETHER = 100
HANG_S = 1.0
LONGEST_SENTENCE = 5_000


@dataclass(slots=True)
class Findings:
    """The result of a run. `counts` has each input once, by its outcome."""

    counts: Counter[str] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    seconds: float = 0.0
    extra_mb: float = 0.0

    @property
    def hangs(self) -> bool:
        """Return whether an input, or a batch of inputs, took too long."""
        return self.slowest_s > HANG_S

    @property
    def is_good(self) -> bool:
        return not self.crashes and not self.hangs


def fuzzed(count: int, inputs: Iterator[T], read: Callable[[T], str]) -> Findings:
    """Read `count` inputs. `read` returns the outcome in a few words, or raises `UserError`."""
    for _ in range(min(count, WARM_UP)):
        _outcome(next(inputs), read, Findings())
    found, before, began = Findings(), peak_mb(), time.monotonic()
    for number in range(count):
        if number % WATCHED_TOGETHER == 0:
            faulthandler.dump_traceback_later(STUCK_S, exit=True)
        each, at = next(inputs), time.thread_time()
        found.counts[_outcome(each, read, found)] += 1
        found.slowest_s = max(found.slowest_s, time.thread_time() - at)
    faulthandler.cancel_dump_traceback_later()
    found.seconds, found.extra_mb = time.monotonic() - began, peak_mb() - before
    return found


def _outcome(each: T, read: Callable[[T], str], found: Findings) -> str:
    try:
        return read(each)
    except UserError as error:
        if "\n" not in str(error) and len(str(error)) < LONGEST_SENTENCE and str(error).endswith((".", "?")):
            return "refused in one sentence"
        found.crashes.append(f"no sentence: {str(error)!r:.500}: {each!r:.2000}")
    except Exception as error:  # noqa: BLE001 - the run looks for exceptions
        found.crashes.append(f"{error!r:.300}: {each!r:.2000}")
    return "crashed"


def peak_mb() -> float:
    """Return the highest memory use of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory_folder() -> str | None:
    """Return a folder in memory for files that change a thousand times a second; None for the default folder."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
