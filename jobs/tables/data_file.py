"""Data files of a Delta table, made by whoever has the rows, and mentioned by whoever commits them."""

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
"""Characters of a text that is told as a file's least or greatest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file in a table's folder: its name, its rows, its bytes, and what Delta keeps of it, in JSON."""

    name: str
    rows: int
    size: int
    stats: str


def write(folder: Path, rows: pa.Table) -> DataFile:
    """A data file of these rows, which no commit mentions yet; one that none ever does, `maintain` removes.

    Raises:
        OSError: the disk is full.
    """
    return write_pieces(folder, rows.schema, [rows])


def write_pieces(folder: Path, schema: pa.Schema, pieces: Iterable[pa.Table]) -> DataFile:
    """The same of rows that come in pieces, one of which is held at a time.

    Raises:
        OSError: the disk is full.
    """
    file, told = folder / f"part-{uuid4()}.zstd.parquet", Statistics()
    try:
        with pq.ParquetWriter(file, schema, compression="zstd") as out:
            for rows in pieces:
                out.write_table(rows)
                told.add(rows)
    except OSError:
        file.unlink(missing_ok=True)
        raise
    return DataFile(name=file.name, rows=told.rows, size=file.stat().st_size, stats=json.dumps(told.stored()))


@dataclass(slots=True)
class Statistics:
    """What Delta keeps of a file: how many rows, the limits of each column that has an order, and its NULLs."""

    rows: int = 0
    _limits: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    _nulls: dict[str, int] = field(default_factory=dict)

    def add(self, rows: pa.Table) -> None:
        """Take in some of the file's rows."""
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
        """As Delta writes it; a column with a long text as a limit is told without."""
        told = {name: tuple(map(_statistic, limits)) for name, limits in self._limits.items()}
        least, greatest = ({name: ends[i] for name, ends in told.items() if None not in ends} for i in (0, 1))
        return {"numRecords": self.rows, "minValues": least, "maxValues": greatest, "nullCount": self._nulls}


def _has_order(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _statistic(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return None if isinstance(value, str) and len(value) > LONGEST else value
