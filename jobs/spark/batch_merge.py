"""Batches of several streams, handed on together where they come at the same time.

The lines and the records of one rebalance arrive in two topics, so in two streams. Built one after the other, a group
would be rebuilt twice, and the second batch would wait for the first.
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
"""How long a batch waits for another stream's that is being read and written; longer than a small one takes."""


@dataclass
class _WaitingBatch:
    new: New
    is_done: bool = False
    error: BaseException | None = None


@dataclass
class BatchMerge:
    """`on_batch` gets the new rows of all batches that are ready, by table, and is never called twice at once."""

    on_batch: Callable[[New], None]
    patience_s: float = PATIENCE_S
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _building: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[_WaitingBatch] = field(default_factory=list)
    _under_way: int = 0

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """A batch is being read and written; it may call `hand_on`, once."""
        with self._changed:
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def hand_on(self, new: New) -> None:
        """Return when `on_batch` has had these rows; raises what it raised."""
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
        except BaseException as raised:  # noqa: BLE001 - every stream whose rows these were fails with it
            error = raised
        for each in ready:
            each.is_done, each.error = True, error


def _together(parts: Sequence[New]) -> New:
    out: dict[Table, NewRows] = {}
    for part in parts:
        for table, rows in part.items():
            out[table] = out[table].and_(rows) if table in out else rows
    return out
