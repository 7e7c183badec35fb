"""Sends to one receiver in a thread of its own: a receiver that hangs delays nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from jobs.config.errors import one_line
from schemas.rows import AlertRow

Errors = Mapping[int, str | None]
"""Position of a row → None if the receiver took it, else why not. Rows that were not tried are missing."""


class Courier:
    """Has at most one batch of rows under way, so nothing piles up before a receiver that hangs."""

    def __init__(self, tell: Callable[[Sequence[AlertRow]], Errors]) -> None:
        self._tell = tell
        self._sent: Sequence[AlertRow] = ()
        self._errors: Errors = {}
        self._thread: threading.Thread | None = None

    def give(self, rows: Sequence[AlertRow]) -> None:
        """Begin to send the rows; call it only when what was given before was collected."""
        self._sent = rows
        # A daemon: the end of the process does not wait for a receiver either.
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def collected(self, within_s: float = 0.0) -> tuple[Sequence[AlertRow], Errors] | None:
        """Return the rows that were given with their outcome; None while they are still being sent."""
        if self._thread is None:
            return None
        self._thread.join(within_s)
        if self._thread.is_alive():
            return None
        self._thread = None
        return self._sent, self._errors

    def _work(self) -> None:
        try:
            self._errors = self._tell(self._sent)
        except Exception as error:  # noqa: BLE001 - such as a secret that is gone: said for this receiver, and tried again
            self._errors = dict.fromkeys(range(len(self._sent)), one_line(error))
