"""Which files of a table hold rows of a group, and of what time: who asks for one group need not open the others.

Per file, group and table some 24 bytes in memory, read from the file's own columns when it is first asked of. A file is
never left out that holds a row of the group whose time overlaps what is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from threading import Lock
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

SPANS = {
    "generations": ("joined_at", "joined_at"),
    "generation_members": ("valid_from_at", "valid_to_at"),
    "stalls": ("stopped_at_earliest", "resumed_at_latest"),
    "group_events": ("event_at", "event_at"),
    "rebalances": ("started_at_earliest", "ended_at"),
}
"""When a row of the table begins and ends; NULL: not yet."""

Between = tuple[datetime | None, datetime | None]
"""From and to, both included; None is no limit."""

ALWAYS: Between = (None, None)
LEAST, MOST = -(2**63), 2**63 - 1
Array = np.ndarray[tuple[int], np.dtype[np.int64]]


class FileRange(NamedTuple):
    """One file: hashes of its groups, ascending, each with the first and last microsecond of its rows."""

    groups: Array
    first: Array
    last: Array

    def holds(self, group: int, first: int, last: int) -> bool:
        at = int(np.searchsorted(self.groups, group))
        # Two groups of one hash are both looked at.
        while at < len(self.groups) and self.groups[at] == group:
            if self.first[at] <= last and self.last[at] >= first:
                return True
            at += 1
        return False


class FileIndex:
    """Those of one table. Safe for threads."""

    def __init__(self, name: str) -> None:
        self._first, self._last = SPANS[name]
        self._lock = Lock()
        self._zones: dict[str, FileRange] = {}

    def files(
        self, cursor: DuckDBPyConnection, files: Sequence[str], cluster: str, group: str, between: Between
    ) -> list[str]:
        """Those of `files` that have rows of the group that overlap `between`."""
        with self._lock:
            missing = [file for file in files if file not in self._zones]
            if missing:
                kept = {file: zone for file, zone in self._zones.items() if file in set(files)}
                self._zones = kept | self._read(cursor, missing)
            zones = [self._zones[file] for file in files]
        key, first, last = hash((cluster, group)), _micros(between[0], LEAST), _micros(between[1], MOST)
        return [file for file, zone in zip(files, zones, strict=True) if zone.holds(key, first, last)]

    def _read(self, cursor: DuckDBPyConnection, files: list[str]) -> dict[str, FileRange]:
        found = (
            cursor.read_parquet(files, filename=True)
            .aggregate(
                f"filename, cluster, group_id, epoch_us(min({self._first})) AS first, "
                f"CASE WHEN count({self._last}) < count(*) THEN {MOST} ELSE epoch_us(max({self._last})) END AS last",
                "filename, cluster, group_id",
            )
            .to_arrow_table()
        )
        names, told_names = _numbered(found["filename"])
        clusters, told_clusters = _numbered(found["cluster"])
        ids, told_ids = _numbered(found["group_id"])
        pairs, which = np.unique(clusters * len(told_ids) + ids, return_inverse=True)
        hashes = [
            hash((told_clusters[pair // len(told_ids)], told_ids[pair % len(told_ids)])) for pair in pairs.tolist()
        ]
        groups = np.array(hashes, np.int64)[which]
        # No beginning that is known is any beginning.
        first = found["first"].fill_null(LEAST).to_numpy()
        last = found["last"].to_numpy()
        order = np.lexsort((groups, names))
        groups, names, first, last = groups[order], names[order], first[order], last[order]
        edges = np.searchsorted(names, np.arange(len(told_names) + 1))
        nothing = FileRange(groups[:0], first[:0], last[:0])
        zones = dict.fromkeys(files, nothing)
        for number, name in enumerate(told_names):
            part = slice(edges[number], edges[number + 1])
            zones[name] = FileRange(groups[part].copy(), first[part].copy(), last[part].copy())
        return zones


def _numbered(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    """A number for each text, and the texts."""
    coded = column.combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


def _micros(at: datetime | None, unlimited: int) -> int:
    return unlimited if at is None else round(at.timestamp() * 1_000_000)
