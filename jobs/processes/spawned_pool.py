"""A pool of spawned processes for work that needs neither Spark nor state of this process."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import ParamSpec, TypeVar

from dashboards.lake.without_pandas import without_pandas
from jobs.processes.processes import die_with_parent

WARNINGS = "PYTHONWARNINGS"
"""Python's environment variable with filters of warnings."""

P = ParamSpec("P")
T = TypeVar("T")


class _Pool(ProcessPoolExecutor):
    """A pool whose processes get Ctrl-C only when they are ready (`_prepare`); before, it would print their imports."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        # A process starts here, and inherits what its thread blocks, whichever thread that is.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def spawned_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool whose processes end with this process, and at once if the block fails.

    Raises:
        BrokenProcessPool: a process was ended.
    """
    _start_silent_tracker()
    # Spawned, because a fork would not have the threads of this process's Kafka clients.
    spawn = multiprocessing.get_context("spawn")
    with _Pool(processes, mp_context=spawn, initializer=_prepare, initargs=(os.getpid(),)) as pool:
        try:
            yield pool
        except BaseException:
            # The pool would wait for the end of the work, for minutes if there is much. Other pools of this process
            # have children too, so only the pool knows which are its own.
            for process in (pool._processes or {}).values():  # noqa: SLF001 - public only since Python 3.14
                process.kill()
            raise


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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    without_pandas()
