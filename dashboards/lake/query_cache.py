"""A cache of query results. Concurrent requests for the same query run it once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa

Row = dict[str, Any]

_Key = tuple[Hashable, tuple[tuple[str, Hashable], ...]]
"""A question, and the versions of its tables."""

RESPONSE_BYTES = 16 << 20
"""Largest result, in bytes as Arrow. As Python values it takes up to 15 times as much."""

CELL_BYTES = 16
"""Bytes of an ordinary cell as Arrow. A longer cell counts as several."""

UNUSED_S = 600.0
"""Seconds after which a result that was not asked for again is dropped. A range that ends now gets new limits every few
seconds, and nobody asks for its earlier limits again.
"""


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


class _Kept(NamedTuple):
    """A result and when it was last asked for, in seconds of the cache's clock."""

    response: Rows
    used_at: float


class QueryCache:
    """The most recently used results, limited to a number of cells, of the last `UNUSED_S` seconds. Thread-safe.

    A result belongs to versions of tables. When one of these tables has another version, the result is dropped, because
    no later query can use it: it would keep the files, schema and texts of its version in memory.
    """

    def __init__(self, cells: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._cells, self._clock = cells, clock
        self._size = 0
        self._lock = Lock()
        self._current: dict[str, Hashable] = {}
        self._entries: OrderedDict[_Key, _Kept] = OrderedDict()
        self._underway: dict[_Key, Future[Rows]] = {}

    def get(self, question: Hashable, versions: Mapping[str, Hashable], ask: Callable[[], Rows]) -> Rows:
        """Return the cached result for these versions by table name, or run `ask`.

        Concurrent callers with the same question and versions share one result or error.
        """
        key = question, tuple(versions.items())
        with self._lock:
            self._drop_others(versions)
            self._drop_unused()
            if (kept := self._entries.pop(key, None)) is not None:
                self._entries[key] = _Kept(kept.response, self._clock())
                return kept.response
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

    def _drop_others(self, versions: Mapping[str, Hashable]) -> None:
        """Drop results of other versions of these tables."""
        if all(self._current.get(name) == version for name, version in versions.items()):
            return
        self._current.update(versions)
        for key in [each for each in self._entries if any(self._current[name] != at for name, at in each[1])]:
            self._size -= _cells(key, self._entries.pop(key).response)

    def _drop_unused(self) -> None:
        since = self._clock() - UNUSED_S
        while self._entries and next(iter(self._entries.values())).used_at < since:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        key, kept = self._entries.popitem(last=False)
        self._size -= _cells(key, kept.response)

    def _keep(self, key: _Key, response: Rows) -> None:
        if any(self._current[name] != at for name, at in key[1]):
            return
        self._entries[key] = _Kept(response, self._clock())
        self._size += _cells(key, response)
        while self._size > self._cells:
            self._drop_oldest()


def _cells(key: _Key, response: Rows) -> int:
    """Return the cells of the result and of the question, which may name a thousand groups."""
    cells = len(response.rows) * len(response.rows[0]) if response.rows else 0
    size = response.size if isinstance(response, SizedRows) else 0
    return _values(key[0]) + max(cells, size // CELL_BYTES)


def _values(part: Hashable) -> int:
    return sum(map(_values, part)) if isinstance(part, tuple) else 1
