"""Rounds of a sender at intervals: a failure is reported once, and the round is tried again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from jobs.config.errors import one_line


def repeat_rounds(
    run: Callable[[int], object],
    failed: Callable[[str], None],
    *,
    seconds: float,
    stopped: threading.Event,
    text: Callable[[str], str] = str,
) -> None:
    """Call `run` with the time in epoch ms until `stopped`, with a pause of `seconds` between two calls.

    `failed` gets the error in one line, as `text` returns it, unless the call before failed with the same.
    """
    complained = ""
    while not stopped.is_set():
        try:
            run(time.time_ns() // 1_000_000)
            complained = ""
        except Exception as error:  # noqa: BLE001 - the next round may succeed
            if not stopped.is_set() and complained != (complained := text(one_line(error))):
                failed(complained)
        stopped.wait(seconds)
