"""Gold of a few groups made in a process of its own, which gives way to all others and ends with the one that asks.

To replay what a lively group did takes seconds of a core: in this process it would keep batches waiting for the
interpreter, in Spark's workers for a core.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, Self

import pyarrow as pa

from jobs.processes import die_with_parent
from pipelines.gold.groups import Group, Known, gold_of_few
from pipelines.gold.rows import Terms
from schemas.gold import GROUP_TABLES
from schemas.tables import Table

NICER = 10
"""Beside a process that asks for it too, it gets a tenth of a core."""


class ReplayError(Exception):
    """What the other process failed of, with its traceback."""


class Replaying:
    """A process that is started when it is first asked, and again where it was ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def gold(
        self, silver: Mapping[str, pa.Table], scope: Mapping[Group, int], known: Known, terms: Terms
    ) -> dict[Table, pa.Table]:
        """What `gold_of_few` returns.

        Raises:
            ReplayError: it failed there, or was ended twice.
        """
        for _ in range(2):
            with suppress(OSError, EOFError, pickle.UnpicklingError):
                found = self._asked((silver, scope, known, terms))
                if isinstance(found, str):
                    raise ReplayError(found)
                return dict(zip(GROUP_TABLES, found, strict=True))
            self._end()
        raise ReplayError("The process that replays groups was ended twice: is there enough memory?")

    def _asked(self, question: Any) -> Any:
        if self._process is None:
            command = [sys.executable, "-P", "-m", __name__]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
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


def _answer(questions: IO[bytes], answers: IO[bytes]) -> None:
    while True:
        try:
            question = pickle.load(questions)  # noqa: S301 - of the process that started this one
        except EOFError:
            return
        try:
            found = gold_of_few(*question)
            told: Any = [found[table] for table in GROUP_TABLES]
        except Exception:  # noqa: BLE001 - told to who asked
            told = traceback.format_exc()
        pickle.dump(told, answers)
        answers.flush()


def _main() -> None:
    # A terminal's Ctrl-C reaches all; who started this one decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    os.nice(NICER)
    _answer(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    _main()
