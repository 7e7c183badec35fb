"""Threads that work beside the batches of `up`."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Working(ABC):
    """A thread; what ends it is raised where it can be told, within `failing`."""

    failing: Callable[[], AbstractContextManager[object]]
    _failure: BaseException | None = None

    def start(self, stopped: threading.Event) -> None:
        threading.Thread(target=self._until, args=[stopped], name=type(self).__name__, daemon=True).start()

    @abstractmethod
    def go_on(self, stopped: threading.Event) -> None:
        """Work until `stopped`."""

    def raise_failure(self) -> None:
        """Raises what ended the thread, if anything did."""
        if self._failure is not None:
            with self.failing():
                raise self._failure

    def _until(self, stopped: threading.Event) -> None:
        try:
            self.go_on(stopped)
        except BaseException as error:  # noqa: BLE001 - raised again by `raise_failure`
            self._failure = error
