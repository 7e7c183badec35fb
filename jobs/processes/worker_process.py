"""A function run in a process of its own, which gives way to all others and ends with the one that asks.

What takes seconds of a core would keep batches waiting for the interpreter in this process, for a core in Spark's
workers.
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

from dashboards.lake.without_pandas import without_pandas
from jobs.processes.processes import die_with_parent
from jobs.tables.engine import disable_file_cache
from jobs.tables.memory import trim

RENEWED_S = 600.0
"""So long a process lives: what allocators and caches keep, in hours more than all that is in use, goes with it."""

NICER = 10
"""Beside a process that asks for it too, it gets a tenth of a core."""


class WorkerProcessError(Exception):
    """What the other process failed of, with its traceback."""


class WorkerProcess:
    """A process that is started when it is first asked, and again where it ended or is old. Not safe for threads."""

    def __init__(self, function: Callable[..., Any], *, nicer: int = NICER) -> None:
        """`function` is a module's own; what it takes and returns travels pickled."""
        self._command = [sys.executable, "-P", "-m", __name__, function.__module__, function.__name__, str(nicer)]
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def ask(self, *question: Any) -> Any:
        """What the function returns.

        Raises:
            BesideError: it failed there, or was ended twice.
        """
        if time.monotonic() - self._started > RENEWED_S:
            self._end()
        for _ in range(2):
            with suppress(OSError, EOFError, pickle.UnpicklingError):
                is_answer, found = self._asked(question)
                if not is_answer:
                    raise WorkerProcessError(found)
                return found
            self._end()
        raise WorkerProcessError("A process that works beside this one was ended twice: is there enough memory?")

    def _asked(self, question: Any) -> Any:
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._started = time.monotonic()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(question, self._process.stdin)
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)  # noqa: S301 - our own process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        # What was not sent yet cannot be any more.
        with suppress(BrokenPipeError), process:
            pass
        process.wait()


def _answer(function: Callable[..., Any], questions: IO[bytes], answers: IO[bytes]) -> None:
    while True:
        try:
            question = pickle.load(questions)  # noqa: S301 - of the process that started this one
        except EOFError:
            return
        pickle.dump(_result(function, question), answers)
        answers.flush()
        del question
        trim()


def _result(function: Callable[..., Any], question: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, function(*question)
    except Exception:  # noqa: BLE001 - told to who asked
        return False, traceback.format_exc()


def _main(module: str, name: str, nicer: str) -> None:
    # A terminal's Ctrl-C reaches all; who started this one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    os.nice(int(nicer))
    without_pandas()
    disable_file_cache()
    _answer(getattr(import_module(module), name), sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    _main(*sys.argv[1:])
