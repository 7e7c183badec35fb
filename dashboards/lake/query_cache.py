"""A cache of query results. Concurrent requests for the same query run it once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa

Row = dict[str, Any]

RESPONSE_BYTES = 16 << 20
"""Largest result, in bytes as Arrow. As Python values it takes up to 15 times as much."""

CELL_BYTES = 16
"""Bytes of an ordinary cell as Arrow. A longer cell counts as several."""


class Rows(NamedTuple):
    """A query result. `is_capped` is True if there are more rows."""

    rows: list[Row]
    is_capped: bool


class SizedRows(Rows):
    """A result that equals `Rows` with the same content. `size` is the bytes of its rows as Arrow."""

    size: int = 0


def rows_of(found: pa.Table, cap: int) -> SizedRows:
    """Return the first `cap` rows, or fewer if they exceed `RESPONSE_BYTES`, because names can have any length."""
    kept = found.slice(0, cap)
    while kept.nbytes > RESPONSE_BYTES:
        kept = kept.slice(0, kept.num_rows // 2)
    response = SizedRows(kept.to_pylist(), is_capped=kept.num_rows < found.num_rows)
    response.size = kept.nbytes
    return response


class QueryCache:
    """The most recently used results, limited to a number of cells. Thread-safe."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._size = 0
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, Rows] = OrderedDict()
        self._underway: dict[Hashable, Future[Rows]] = {}

    def get(self, key: Hashable, ask: Callable[[], Rows]) -> Rows:
        """Return the cached result, or run `ask`. Concurrent callers with the same key share one result or error."""
        with self._lock:
            if (response := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return response
            underway = self._underway.get(key)
            if underway is None:
                mine = self._underway[key] = Future()
        if underway is not None:
            return underway.result()
        try:
            response = ask()
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(response)
            return response
        finally:
            with self._lock:
                del self._underway[key]
                if mine.exception() is None:
                    self._keep(key, mine.result())

    def _keep(self, key: Hashable, response: Rows) -> None:
        self._entries[key] = response
        self._size += _cells(response)
        while self._size > self._cells:
            _, oldest = self._entries.popitem(last=False)
            self._size -= _cells(oldest)


def _cells(response: Rows) -> int:
    cells = len(response.rows) * len(response.rows[0]) if response.rows else 0
    size = response.size if isinstance(response, SizedRows) else 0
    return 1 + max(cells, size // CELL_BYTES)
