"""Data files of a Delta table. The process that has the rows writes them; another one may commit them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LONGEST = 200
"""Highest number of characters of a text in a file's statistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file in a table's folder: its name, number of rows, bytes, and Delta's statistics in JSON."""

    name: str
    rows: int
    size: int
    stats: str


def write(folder: Path, rows: pa.Table) -> DataFile:
    """Write these rows to a data file that no commit refers to yet. If none ever does, `maintain` removes the file.

    Raises:
        OSError: the disk is full.
    """
    return write_pieces(folder, rows.schema, [rows])


def write_pieces(folder: Path, schema: pa.Schema, pieces: Iterable[pa.Table]) -> DataFile:
    """Write rows in pieces to one data file, with one piece in memory at a time.

    Raises:
        OSError: the disk is full.
    """
    file, statistics = folder / f"part-{uuid4()}.zstd.parquet", Statistics()
    try:
        with pq.ParquetWriter(file, schema, compression="zstd") as out:
            for rows in pieces:
                out.write_table(rows)
                statistics.add(rows)
    except OSError:
        file.unlink(missing_ok=True)
        raise
    return DataFile(
        name=file.name, rows=statistics.rows, size=file.stat().st_size, stats=json.dumps(statistics.stored())
    )


@dataclass(slots=True)
class Statistics:
    """Delta's statistics of a file: the number of rows, and by column the NULLs and, if it is ordered, the limits."""

    rows: int = 0
    _limits: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    _nulls: dict[str, int] = field(default_factory=dict)

    def add(self, rows: pa.Table) -> None:
        """Add some of the file's rows."""
        self.rows += rows.num_rows
        for column in rows.schema:
            values = rows[column.name]
            if not pa.types.is_nested(column.type):
                self._nulls[column.name] = self._nulls.get(column.name, 0) + values.null_count
            if _has_order(column.type) and values.null_count < len(values):
                least, greatest = pc.min_max(values).as_py().values()
                known = self._limits.get(column.name, (least, greatest))
                self._limits[column.name] = min(least, known[0]), max(greatest, known[1])

    def stored(self) -> Mapping[str, Any]:
        """Return the statistics as Delta stores them. A column whose limits include a long text has no limits."""
        statistics = {name: tuple(map(_statistic, limits)) for name, limits in self._limits.items()}
        least, greatest = ({name: ends[i] for name, ends in statistics.items() if None not in ends} for i in (0, 1))
        return {"numRecords": self.rows, "minValues": least, "maxValues": greatest, "nullCount": self._nulls}


def _has_order(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _statistic(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return None if isinstance(value, str) and len(value) > LONGEST else value
