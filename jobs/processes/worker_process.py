"""A function in a separate process with low priority, which ends with the process that started it.

Long computations in this process would delay batches, which need the interpreter here and the cores in Spark's workers.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import IO, Any, Self

from dashboards.lake.allocators import trim
from dashboards.lake.without_pandas import without_pandas
from jobs.config.errors import LostWorkerError
from jobs.processes import template
from jobs.processes.processes import die_with_parent
from jobs.tables.engine import disable_file_cache

RENEWED_S = 600.0
"""Lifetime of a worker process in seconds. Its end frees memory that allocators and caches keep: after hours, that is
more than all memory in use.
"""

NICER = 10
"""Added niceness. Next to a busy process of normal priority, the worker process gets a tenth of a core."""


class WorkerProcessError(Exception):
    """A failure in the worker process, with its traceback."""


class WorkerProcess:
    """A process that starts at the first call, and again when it has ended or is old. Not thread-safe."""

    def __init__(self, function: Callable[..., Any], *, nicer: int = NICER) -> None:
        """`function` is a top-level function of a module. Its arguments and results are pickled."""
        self._arguments = [__name__, function.__module__, function.__name__, str(nicer)]
        self._process: subprocess.Popen[bytes] | template.Forked | None = None
        self._started = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def ask(self, *question: Any) -> Any:
        """Call the function in the worker process and return its result.

        Raises:
            WorkerProcessError: the function failed.
            LostWorkerError: the process was ended twice.
        """
        if time.monotonic() - self._started > RENEWED_S:
            self._end()
        for _ in range(2):
            with suppress(OSError, EOFError, pickle.UnpicklingError):
                is_response, found = self._asked(question)
                if not is_response:
                    raise WorkerProcessError(found)
                return found
            self._end()
        raise LostWorkerError("A worker process was ended twice")

    def _asked(self, question: Any) -> Any:
        if self._process is None:
            self._process = template.forked(*self._arguments) or self._spawned()
            self._started = time.monotonic()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(question, self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)  # noqa: S301 - our own process

    def _spawned(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", *self._arguments]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        # Unsent data is lost with the process.
        with suppress(BrokenPipeError), process:
            pass
        process.wait()


def _response(function: Callable[..., Any], questions: IO[bytes], responses: IO[bytes]) -> None:
    while True:
        try:
            question = pickle.load(questions)  # noqa: S301 - of the process that started this one
        except EOFError:
            return
        pickle.dump(_result(function, question), responses)
        responses.flush()
        del question
        trim()


def _result(function: Callable[..., Any], question: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, function(*question)
    except Exception:  # noqa: BLE001 - returned to the caller
        return False, traceback.format_exc()


def _main(module: str, name: str, nicer: str) -> None:
    # A terminal's Ctrl-C reaches all processes of the group, but only the parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    os.nice(int(nicer))
    without_pandas()
    disable_file_cache()
    _response(getattr(import_module(module), name), sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    _main(*sys.argv[1:])
