"""The parts of sums that `dashboards.lake.file_sums` keeps of each file of a table, and which items files share.

A part takes 41 bytes per item, and 8 more per item of all parts. If the parts take more memory than allowed, those of
the files with the oldest rows are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

Hashes = np.ndarray[tuple[int], np.dtype[np.uint64]]
NONE: Hashes = np.array([], np.uint64)


@dataclass(slots=True)
class FilePart:
    """The rows of one file, ordered by `items`, with `is_shared`; None if they are no longer kept.

    `span` is the first and last time in microseconds; None for a file without rows.
    """

    rows: pa.Table | None
    items: Hashes
    span: tuple[int, int] | None

    @property
    def is_shared(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return NONE.astype(bool) if self.rows is None else self.rows["is_shared"].to_numpy()


class Between(NamedTuple):
    """The parts of a range: the rows of files that lie within it, and the files whose rows must be read.

    With `is_complete`, the parts of all these files are kept.
    """

    whole: list[pa.Table]
    edges: list[str]
    is_complete: bool


class KeptParts:
    """The parts by file. Not thread-safe. Without items, nothing is shared."""

    def __init__(self, most_bytes: int, *, has_items: bool) -> None:
        self._most_bytes = most_bytes
        self._has_items = has_items
        self._parts: dict[str, FilePart] = {}
        self._items = NONE

    def drop_others(self, files: Sequence[str]) -> list[str]:
        """Drop the parts of files that are not among these; return those of these that have none."""
        for file in self._parts.keys() - set(files):
            self._drop(self._parts.pop(file))
        return [file for file in files if file not in self._parts]

    def add(self, file: str, rows: pa.Table, span: tuple[int, int] | None) -> None:
        """Keep the rows of a file, ordered by `item`."""
        items = rows["item"].to_numpy() if self._has_items else NONE
        is_known = np.zeros(rows.num_rows, np.bool_)
        at = np.searchsorted(self._items, items)
        if len(items) and len(self._items):
            is_known = self._items[np.minimum(at, len(self._items) - 1)] == items
            self._share(items[is_known])
        if len(items):
            self._items = np.insert(self._items, at[~is_known], items[~is_known])
        self._parts[file] = FilePart(rows.append_column("is_shared", pa.array(is_known)), items, span)
        self._limit()

    def between(self, first: int, limit: int) -> Between:
        """Return the parts of the range from `first` until before `limit`, in microseconds."""
        found = Between([], [], is_complete=True)
        is_complete = True
        for file, part in self._parts.items():
            if part.span is None or part.span[1] < first or part.span[0] >= limit:
                continue
            is_complete = is_complete and part.rows is not None
            if part.rows is not None and first <= part.span[0] and part.span[1] < limit:
                found.whole.append(part.rows)
            else:
                found.edges.append(file)
        return found._replace(is_complete=is_complete)

    def _share(self, items: Hashes) -> None:
        """Mark these items in every part."""
        for part in self._parts.values():
            if part.rows is None or not len(part.items):
                continue
            at = np.minimum(np.searchsorted(part.items, items), len(part.items) - 1)
            at = at[part.items[at] == items]
            if len(at):
                is_shared = part.is_shared.copy()
                is_shared[at] = True
                part.rows = part.rows.drop_columns("is_shared").append_column("is_shared", pa.array(is_shared))

    def _drop(self, part: FilePart) -> None:
        """Forget the items that only this part has. Shared ones stay marked, which is correct but slower."""
        if len(part.items):
            self._items = np.delete(self._items, np.searchsorted(self._items, part.items[~part.is_shared]))
        part.rows, part.items = None, NONE
        if len(self._items) > 2 * sum(len(each.items) for each in self._parts.values()):
            self._items = np.unique(np.concatenate([NONE, *(each.items for each in self._parts.values())]))

    def _limit(self) -> None:
        """Drop the oldest parts until the others fit the memory."""
        kept = [part for part in self._parts.values() if part.rows is not None and part.span is not None]
        kept.sort(key=lambda part: part.span or (0, 0))
        size = sum(part.rows.nbytes + 8 * len(part.items) for part in kept if part.rows is not None)
        for part in kept:
            if size <= self._most_bytes:
                return
            size -= (part.rows.nbytes if part.rows is not None else 0) + 8 * len(part.items)
            self._drop(part)
