"""One sentence for a lost worker process, and commands that are repeated after it.

Spark raises the same few texts, deep in its traces, if a Python worker is killed, lacks memory, or starts too late. No
work is lost with it, because each job continues where it stopped.
"""

from __future__ import annotations

import re
import time
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from jobs.config.errors import LateWorkerError, LostWorkerError, UserError
from jobs.config.terminal import warn

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from jobs.config.settings import Settings

    Command = Callable[[Settings, argparse.Namespace], int]

T = TypeVar("T")

LATE = re.compile(
    "Python worker failed to connect back|waiting for the Python worker to connect back|failed to launch worker"
    "|CANNOT_OPEN_SOCKET|occurred while reading the port number|STREAMING_PYTHON_RUNNER_INITIALIZATION"
)
"""Errors of a Python worker that did not start. Spark waits ten seconds for it; a busy machine may need longer."""

ENDED = re.compile("Python worker exited unexpectedly|Python worker process terminated")

BROKEN = re.compile(rf"\b{BrokenProcessPool.__name__}: ")
"""Python's error in the text of a stream that failed with it."""

PAUSES_S = (1.0, 10.0, 60.0)
"""Pauses in seconds before each repetition. After the last one, the command fails."""

CALM_S = 600.0
"""Seconds of work after which a lost worker counts as the first one again."""

REPEATED = ("analyze", "maintain", "rebuild")
"""Commands that are repeated as a whole. `ingest`, `build` and `up` restart their streams instead."""


def lost_worker(error: BaseException) -> LostWorkerError | None:
    """Return how a worker was lost, as a clause; None if the error has another cause."""
    if isinstance(error, LostWorkerError):
        return error
    if isinstance(error, UserError):
        return None
    if isinstance(error, BrokenProcessPool) or BROKEN.search(str(error)):
        return LostWorkerError("A worker process ended before its work was done")
    if LATE.search(str(error)):
        return LateWorkerError("A Python worker of Spark did not start")
    if ENDED.search(str(error)):
        return LostWorkerError("A Python worker of Spark ended before its work was done")
    return None


def repeated(command: Command, pauses_s: Sequence[float] = PAUSES_S) -> Command:
    """Return the command, repeated after a lost worker if it is one of `REPEATED`.

    It raises a `UserError` if a worker is lost again after the last pause.
    """

    def run(settings: Settings, args: argparse.Namespace) -> int:
        pauses = pauses_s if args.command in REPEATED else ()
        return repeat(partial(command, settings, args), f"regroup {args.command}", "this command", pauses)

    return run


def repeat(action: Callable[[], T], name: str, what: str, pauses_s: Sequence[float] = PAUSES_S) -> T:
    """Call the action, and again after a lost worker. Before each pause, a warning says that `what` is repeated.

    It begins with `name`, the command.

    Raises:
        UserError: a worker was lost after the last pause.
    """
    left = list(pauses_s)
    while True:
        began = time.monotonic()
        try:
            return action()
        except Exception as error:
            if (lost := lost_worker(error)) is None:
                raise
        if time.monotonic() - began > CALM_S:
            left = list(pauses_s)
        if not left:
            raise UserError(
                f"{lost}, again and again: start this command again; it continues where it stopped. If nobody ends "
                "the worker, check the load of this machine, and the system's log for a lack of memory."
            )
        warn(f"{name}: {lost}: {what} is repeated in {left[0]:.0f} s.")
        time.sleep(left.pop(0))
