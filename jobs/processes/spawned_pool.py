"""A pool of spawned processes for work that needs neither Spark nor state of this process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker

from dashboards.lake.without_pandas import without_pandas
from jobs.processes.processes import die_with_parent

WARNINGS = "PYTHONWARNINGS"
"""Python's environment variable with filters of warnings."""


@contextmanager
def spawned_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool whose processes end with this process, and at once if the block fails.

    Raises:
        BrokenProcessPool: a process was ended.
    """
    _start_silent_tracker()
    # Spawned, because a fork would not have the threads of this process's Kafka clients.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn, initializer=_prepare, initargs=(os.getpid(),)) as pool:
        try:
            yield pool
        except BaseException:
            # The pool would wait for the end of the work, for minutes if there is much.
            for process in multiprocessing.active_children():
                process.kill()
            raise


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Let processes that start in the block ignore Ctrl-C until they are ready: they would print their imports."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start_silent_tracker() -> None:
    """Start Python's process that removes the semaphores of a pool if this process ends before the pool.

    Without this, the first pool would start that process, and it would print how many semaphores it removed.
    """
    before = os.environ.get(WARNINGS)
    os.environ[WARNINGS] = "ignore::UserWarning:multiprocessing.resource_tracker"
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ[WARNINGS]
        else:
            os.environ[WARNINGS] = before


def _prepare(parent: int) -> None:
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)  # it ended before
    # A terminal's Ctrl-C ends these processes at once and without traces.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    without_pandas()
