"""Merges batches of several streams that arrive at the same time into one build.

The log lines and the records of one rebalance arrive in two topics, and therefore in two streams. If each were built
alone, a group would be rebuilt twice, and the second batch would wait for the first.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jobs.tables.new_rows import NewRows
    from schemas.tables import Table

    New = Mapping[Table, NewRows]

PATIENCE_S = 5.0
"""Seconds that a batch waits for another stream's running batch. A small batch takes less."""


@dataclass
class _WaitingBatch:
    new: New
    is_done: bool = False
    error: BaseException | None = None


@dataclass
class BatchMerge:
    """Calls `on_batch` with the new rows of all waiting batches by table, and never twice at the same time."""

    on_batch: Callable[[New], None]
    patience_s: float = PATIENCE_S
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _building: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[_WaitingBatch] = field(default_factory=list)
    _under_way: int = 0

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Mark a batch as being read and written. Within the block, it may call `hand_on` once."""
        with self._changed:
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def hand_on(self, new: New) -> None:
        """Return after `on_batch` has processed these rows. Raise its exception."""
        mine = _WaitingBatch(new)
        with self._changed:
            self._waiting.append(mine)
            self._changed.notify_all()
        with self._building:
            if not mine.is_done:
                self._build(self._ready())
        if mine.error is not None:
            raise mine.error

    def _ready(self) -> list[_WaitingBatch]:
        until = time.monotonic() + self.patience_s
        with self._changed:
            while self._under_way > len(self._waiting) and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            ready, self._waiting = self._waiting, []
        return ready

    def _build(self, ready: Sequence[_WaitingBatch]) -> None:
        error: BaseException | None = None
        try:
            self.on_batch(_together([each.new for each in ready]))
        except BaseException as raised:  # noqa: BLE001 - it is raised in every stream whose rows these are
            error = raised
        for each in ready:
            each.is_done, each.error = True, error


def _together(parts: Sequence[New]) -> New:
    out: dict[Table, NewRows] = {}
    for part in parts:
        for table, rows in part.items():
            out[table] = out[table].and_(rows) if table in out else rows
    return out
