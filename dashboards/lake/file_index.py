"""An index of the groups and times in each file of a table, so that a query on a group or a range skips other files.

It takes about 24 bytes of memory per file, group and table, read from the file's columns at the first query. A file is
never skipped if it holds a row of the group whose time overlaps the query's range.
"""

from __future__ import annotations

from datetime import datetime
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from dashboards.lake.delta_files import Source

SPANS = {
    "generations": ("joined_at", "joined_at"),
    "generation_members": ("valid_from_at", "valid_to_at"),
    "stalls": (
        "stopped_at_earliest",
        "CASE WHEN resumed_at_latest IS NOT NULL THEN greatest(stopped_at_latest, resumed_at_latest) END",
    ),
    "group_events": ("event_at", "event_at"),
    "rebalances": ("started_at_earliest", "ended_at"),
    "verdicts": ("joined_at", "joined_at"),
}
"""A column with the start of a row, and an expression with its end; NULL means not yet."""

Between = tuple[datetime | None, datetime | None]
"""From and to, both inclusive; None means no limit."""

ALWAYS: Between = (None, None)
LEAST, MOST = -(2**63), 2**63 - 1
Array = np.ndarray[tuple[int], np.dtype[np.int64]]


class FileRange(NamedTuple):
    """One file: sorted hashes of its groups, each with the first and last microsecond of its rows, and of all rows."""

    groups: Array
    first: Array
    last: Array
    earliest: int
    latest: int

    @classmethod
    def of(cls, groups: Array, first: Array, last: Array) -> FileRange:
        """Return the range of a file with rows of these groups. A file without rows overlaps nothing."""
        earliest, latest = (int(first.min()), int(last.max())) if len(groups) else (MOST, LEAST)
        return cls(groups, first, last, earliest, latest)

    def may_contain(self, group: int | None, first: int, last: int) -> bool:
        """Return whether the file may have a row between `first` and `last`, of this group if one is given."""
        if self.earliest > last or self.latest < first:
            return False
        if group is None:
            return True
        at = int(np.searchsorted(self.groups, group))
        # Two groups may have the same hash; check both.
        while at < len(self.groups) and self.groups[at] == group:
            if self.first[at] <= last and self.last[at] >= first:
                return True
            at += 1
        return False


class FileIndex:
    """The index of one table. Thread-safe."""

    def __init__(self, name: str) -> None:
        self._first, self._last = SPANS[name]
        self._lock = Lock()
        self._ranges: dict[str, FileRange] = {}

    def files(
        self, cursor: DuckDBPyConnection, source: Source, group: tuple[str, str] | None, between: Between
    ) -> list[str]:
        """Return the files that may have rows within `between`, of this cluster and group if they are given."""
        files = source.files
        with self._lock:
            missing = [file for file in files if file not in self._ranges]
            if missing:
                kept = {file: file_range for file, file_range in self._ranges.items() if file in set(files)}
                self._ranges = kept | self._read(cursor, source, missing)
            ranges = [self._ranges[file] for file in files]
        key = None if group is None else hash(group)
        first, last = _micros(between[0], LEAST), _micros(between[1], MOST)
        return [
            file for file, file_range in zip(files, ranges, strict=True) if file_range.may_contain(key, first, last)
        ]

    def _read(self, cursor: DuckDBPyConnection, source: Source, files: list[str]) -> dict[str, FileRange]:
        found = (
            source.with_file_names(cursor, files)
            .aggregate(
                f"filename, cluster, group_id, epoch_us(min({self._first})) AS first, "
                f"CASE WHEN count({self._last}) < count(*) THEN {MOST} ELSE epoch_us(max({self._last})) END AS last",
                "filename, cluster, group_id",
            )
            .to_arrow_table()
        )
        names, known_names = _numbered(found["filename"])
        clusters, known_clusters = _numbered(found["cluster"])
        ids, known_ids = _numbered(found["group_id"])
        pairs, which = np.unique(clusters * len(known_ids) + ids, return_inverse=True)
        hashes = [
            hash((known_clusters[pair // len(known_ids)], known_ids[pair % len(known_ids)])) for pair in pairs.tolist()
        ]
        groups = np.array(hashes, np.int64)[which]
        # An unknown start counts as the earliest possible one.
        first = found["first"].fill_null(LEAST).to_numpy()
        last = found["last"].to_numpy()
        order = np.lexsort((groups, names))
        groups, names, first, last = groups[order], names[order], first[order], last[order]
        edges = np.searchsorted(names, np.arange(len(known_names) + 1))
        nothing = FileRange.of(groups[:0], first[:0], last[:0])
        ranges = dict.fromkeys(files, nothing)
        for number, name in enumerate(known_names):
            part = slice(edges[number], edges[number + 1])
            ranges[name] = FileRange.of(groups[part].copy(), first[part].copy(), last[part].copy())
        return ranges


def _numbered(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    """Return an index for each text, and the distinct texts."""
    coded = column.combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


def _micros(at: datetime | None, unlimited: int) -> int:
    return unlimited if at is None else round(at.timestamp() * 1_000_000)
