"""Queries of DuckDB that run in other threads when the process ends.

When the interpreter ends, CPython ends each thread that wants to continue, also in the middle of C++ code, which aborts
the process (`terminate called`, exit code 134). So the end waits for the running queries, and no other one begins.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_S = 5.0
"""Longest wait for running queries in seconds."""

_starting = threading.Lock()
_counting = threading.Lock()
_in_thread = threading.local()
_running = 0


@contextmanager
def running() -> Iterator[None]:
    """Let the end of the process wait for the block. The block of a thread that begins after it never starts."""
    global _running  # noqa: PLW0603 - one count for the process
    depth = getattr(_in_thread, "depth", 0)
    if not depth:
        with _starting, _counting:
            _running += 1
    _in_thread.depth = depth + 1
    try:
        yield
    finally:
        _in_thread.depth = depth
        if not depth:
            with _counting:
                _running -= 1


def finish() -> None:
    """Wait until other threads run no query, and let none start."""
    depth, until = getattr(_in_thread, "depth", 0), time.monotonic() + LONGEST_S
    # Never released. If this thread runs a block, or has been here before, it may go on.
    _in_thread.depth = depth + 1
    if not _starting.acquire(timeout=0 if depth else LONGEST_S):
        return
    while _running > bool(depth) and time.monotonic() < until:
        time.sleep(0.01)


atexit.register(finish)
