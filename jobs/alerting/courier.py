"""Sends to one receiver in a separate thread, so that a hanging receiver does not delay the others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from jobs.config.errors import one_line
from schemas.rows import AlertRow

Errors = Mapping[int, str | None]
"""Position of a row → None if the receiver accepted it, else the reason. Rows that were not tried are missing."""


class Courier:
    """Sends at most one batch of rows at a time, so that no queue builds up for a hanging receiver."""

    def __init__(self, send: Callable[[Sequence[AlertRow]], Errors]) -> None:
        self._send = send
        self._sent: Sequence[AlertRow] = ()
        self._errors: Errors = {}
        self._thread: threading.Thread | None = None

    def give(self, rows: Sequence[AlertRow]) -> None:
        """Start sending the rows. Call it only after the outcome of the previous rows was collected."""
        self._sent = rows
        # A daemon thread, so that the process can end without waiting for a receiver.
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def collected(self, within_s: float = 0.0) -> tuple[Sequence[AlertRow], Errors] | None:
        """Return the rows and their outcome; None while they are still being sent."""
        if self._thread is None:
            return None
        self._thread.join(within_s)
        if self._thread.is_alive():
            return None
        self._thread = None
        return self._sent, self._errors

    def _work(self) -> None:
        try:
            self._errors = self._send(self._sent)
        except Exception as error:  # noqa: BLE001 - such as a missing secret: reported for this receiver, and retried
            self._errors = dict.fromkeys(range(len(self._sent)), one_line(error))
