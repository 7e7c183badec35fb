"""Filters the stderr of the JVM and of its Python workers: leaves out text for which a one-line message is printed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread

from jobs.spark.lost_worker import LATE

TRACEBACK = "Traceback (most recent call last):"
STREAM = 'Exception in thread "stream execution thread for '
INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector"
"""The JVM prints this line at each start, because Spark uses the module."""

STOPPED = ("BrokenPipeError: ", "ConnectionResetError: ")
"""Ends of the traceback of a worker whose task was stopped: it cannot send its answer."""

OVERFLOW = "java.lang.StackOverflowError"
"""When a stream is stopped while its batch fails, Spark looks for known errors in the text of the failure, with an
expression that needs a stack frame for each character (`StreamExecution.isInterruptionException`).
"""


def passed_on(lines: Iterable[str]) -> Iterator[str]:
    """Return the lines that are passed on.

    Three kinds of traces are left out: of a Python worker that connected too late, or whose task was stopped, because
    the stream or task that waited for it fails too and is reported in one line; and of a stream that was stopped while
    its batch failed, because the next start repeats that batch.
    """
    trace: list[str] = []
    for line in lines:
        if line.startswith((TRACEBACK, STREAM)):
            yield from _unless_reported(trace)
            trace = [line]
        elif trace and (line.startswith((" ", "\t")) or not line.strip()):
            trace.append(line)
        elif trace and trace[0].startswith(TRACEBACK):
            yield from _unless_reported([*trace, line])
            trace = []
        else:
            yield from _unless_reported(trace)
            trace = []
            if line.strip() != INCUBATOR:
                yield line
    yield from _unless_reported(trace)


def _unless_reported(trace: list[str]) -> list[str]:
    if not trace:
        return trace
    if trace[0].startswith(STREAM):
        is_reported = OVERFLOW in trace[0] and "java.util.regex" in trace[-1]
    else:
        is_of_worker = any("pyspark/daemon.py" in line for line in trace)
        is_reported = LATE.search(trace[-1]) is not None or (is_of_worker and trace[-1].startswith(STOPPED))
    return [] if is_reported else trace


@contextmanager
def filtered_stderr() -> Iterator[None]:
    """Filter the stderr of processes that are started in the block, for as long as they run (`passed_on`)."""
    reading, writing = os.pipe()
    original = os.dup(2)
    Thread(target=_pass_on, args=(reading, os.dup(original)), daemon=True, name="stderr of the JVM").start()
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)


def _pass_on(reading: int, writing: int) -> None:
    with (
        os.fdopen(reading, encoding="utf-8", errors="replace") as source,
        os.fdopen(writing, "w", encoding="utf-8", errors="replace") as stderr,
    ):
        for line in passed_on(source):
            stderr.write(line)
            stderr.flush()
