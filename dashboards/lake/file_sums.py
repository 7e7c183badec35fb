"""Keeps the sums of each file of a table (`dashboards.lake.sums`), because a Delta file never changes.

For a range, the kept sums of the files whose rows all lie within it are added up. Only files that also have rows
outside it are read. The result is the same as from the rows: if several files have parts of one item, the parts are
added up before anything is computed from the item.
"""

from __future__ import annotations

from datetime import datetime
from threading import Lock

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from dashboards.lake.delta_files import Source, quoted
from dashboards.lake.kept_parts import KeptParts
from dashboards.lake.sums import Sums


class FileSums:
    """The sums of one table, with what is kept of its files. Thread-safe."""

    def __init__(self, sums: Sums, most_bytes: int) -> None:
        self._sums = sums
        self._lock = Lock()
        self._parts = KeptParts(most_bytes, has_items=bool(sums.item))
        self._columns = ["owner", "item", *sums.measures]
        self._owners: pa.Table | None = None

    def keep(self, cursor: DuckDBPyConnection, source: Source) -> None:
        """Compute the sums of the files that have none yet, and drop those of files that the table no longer has."""
        with self._lock:
            self._update(cursor, source)

    def query(self, cursor: DuckDBPyConnection, name: str, source: Source, start: datetime, end: datetime) -> str:
        """Return the query of the sums of the rows from `start` until before `end`, for this cursor."""
        with self._lock:
            self._update(cursor, source)
            parts, owners = self._parts.between(_micros(start), _micros(end)), self._owners
        rows, limits = source.rows(cursor, name, parts.edges), (sql_moment(start), sql_moment(end))
        if not parts.whole:
            return self._sums.sums_sql(rows, *limits)
        cursor.register(f"{name} owners", owners)
        cursor.register(f"{name} kept", pa.concat_tables(parts.whole))
        edges = f"({self._sums.parts_sql(rows, self._sums.in_range(*limits))})"
        # Which items a file shares is not known without its sums.
        shared = "is_shared" if parts.is_complete else "true"
        return self._sums.added_sql(quoted(f"{name} kept"), edges, quoted(f"{name} owners"), shared)

    def _update(self, cursor: DuckDBPyConnection, source: Source) -> None:
        # Several files at once take a third less time, but 100 MB more, which DuckDB does not return.
        for file in self._parts.drop_others(source.files):
            self._load(cursor, source, file)

    def _load(self, cursor: DuckDBPyConnection, source: Source, file: str) -> None:
        at = f"epoch_us({self._sums.at})"
        span = {"first_us": f"min({at})", "last_us": f"max({at})"}
        written = source.rows(cursor, "of file", [file])
        condition = f"{self._sums.condition} AND {self._sums.at} IS NOT NULL"
        found = cursor.sql(self._sums.parts_sql(written, condition, span)).to_arrow_table()
        owners = cursor.sql(self._sums.owners_sql(written)).to_arrow_table()
        if self._owners is not None:
            is_new = ~np.isin(owners["owner"].to_numpy(), self._owners["owner"].to_numpy())
            owners = pa.concat_tables([self._owners, owners.filter(pa.array(is_new))]).combine_chunks()
        self._owners = owners
        rows = found.take(pa.array(np.argsort(found["item"].to_numpy()))).combine_chunks()
        first_us, last_us = rows["first_us"].to_numpy(), rows["last_us"].to_numpy()
        span_us = (int(first_us.min()), int(last_us.max())) if rows.num_rows else None
        self._parts.add(file, rows.select(self._columns), span_us)


def _micros(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000)


def sql_moment(at: datetime) -> str:
    """Return a time as SQL."""
    return f"make_timestamptz({_micros(at)})"
