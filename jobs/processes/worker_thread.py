"""Threads of `up` that run next to the batches."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class WorkerThread(ABC):
    """A thread whose failure is kept and raised later in the main thread, within `failing`."""

    failing: Callable[[], AbstractContextManager[object]] = nullcontext
    _failure: BaseException | None = None
    _thread: threading.Thread | None = None

    def start(self, stopped: threading.Event) -> None:
        self._thread = threading.Thread(target=self._until, args=[stopped], name=type(self).__name__, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Return after the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    @abstractmethod
    def go_on(self, stopped: threading.Event) -> None:
        """Work until `stopped`."""

    def raise_failure(self) -> None:
        """Raise the exception that ended the thread, if there is one."""
        if self._failure is not None:
            with self.failing():
                raise self._failure

    def _until(self, stopped: threading.Event) -> None:
        try:
            self.go_on(stopped)
        except BaseException as error:  # noqa: BLE001 - raised again by `raise_failure`
            self._failure = error
