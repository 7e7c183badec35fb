"""Answers that are kept, and questions that are asked once however many wait for them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa

Row = dict[str, Any]

ANSWER_BYTES = 16 << 20
"""Bytes of one answer as Arrow holds it; as Python's values it takes up to 15 times as much."""

CELL_BYTES = 16
"""Bytes of an ordinary cell as Arrow holds it: a longer one counts as several."""


class Rows(NamedTuple):
    """An answer; `is_capped` when there would have been more rows."""

    rows: list[Row]
    is_capped: bool


class SizedRows(Rows):
    """An answer equal to `Rows` with the same content. `size`: bytes of the rows as Arrow holds them."""

    size: int = 0


def rows_of(found: pa.Table, cap: int) -> SizedRows:
    """The first `cap` rows, and fewer if they have more than `ANSWER_BYTES`: clients choose the lengths of names."""
    kept = found.slice(0, cap)
    while kept.nbytes > ANSWER_BYTES:
        kept = kept.slice(0, kept.num_rows // 2)
    answer = SizedRows(kept.to_pylist(), is_capped=kept.num_rows < found.num_rows)
    answer.size = kept.nbytes
    return answer


class QueryCache:
    """The newest answers, at most so many cells of them. Safe for threads."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._held = 0
        self._lock = Lock()
        self._answers: OrderedDict[Hashable, Rows] = OrderedDict()
        self._underway: dict[Hashable, Future[Rows]] = {}

    def get(self, key: Hashable, ask: Callable[[], Rows]) -> Rows:
        """The kept answer, or that of `ask`; who comes while another asks the same gets the other's, or its error."""
        with self._lock:
            if (answer := self._answers.get(key)) is not None:
                self._answers.move_to_end(key)
                return answer
            underway = self._underway.get(key)
            if underway is None:
                mine = self._underway[key] = Future()
        if underway is not None:
            return underway.result()
        try:
            answer = ask()
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(answer)
            return answer
        finally:
            with self._lock:
                del self._underway[key]
                if mine.exception() is None:
                    self._keep(key, mine.result())

    def _keep(self, key: Hashable, answer: Rows) -> None:
        self._answers[key] = answer
        self._held += _cells(answer)
        while self._held > self._cells:
            _, oldest = self._answers.popitem(last=False)
            self._held -= _cells(oldest)


def _cells(answer: Rows) -> int:
    cells = len(answer.rows) * len(answer.rows[0]) if answer.rows else 0
    size = answer.size if isinstance(answer, SizedRows) else 0
    return 1 + max(cells, size // CELL_BYTES)
