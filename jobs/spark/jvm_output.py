"""Filters the stderr of the JVM and of its Python workers: leaves out text for which a one-line message is printed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Thread

from jobs.spark.lost_worker import LATE

TRACEBACK = "Traceback (most recent call last):"
INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector"
"""The JVM prints this line at each start, because Spark uses the module."""


def passed_on(lines: Iterable[str]) -> Iterator[str]:
    """Return the lines that are passed on.

    The traceback of a Python worker that connected too late is left out: the stream or task that waited for it fails
    too, and its failure is reported in one line.
    """
    traceback: list[str] = []
    for line in lines:
        if line.startswith(TRACEBACK):
            yield from traceback
            traceback = [line]
        elif traceback and (line.startswith((" ", "\t")) or not line.strip()):
            traceback.append(line)
        elif traceback:
            if not LATE.search(line):
                yield from (*traceback, line)
            traceback = []
        elif line.strip() != INCUBATOR:
            yield line
    yield from traceback


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
