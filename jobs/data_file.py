"""Data files of a Delta table, made by whoever has the rows, and mentioned by whoever commits them."""

from __future__ import annotations

import json
from dataclasses import dataclass
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
    file = folder / f"part-{uuid4()}.zstd.parquet"
    try:
        pq.write_table(rows, file, compression="zstd")
    except OSError:
        file.unlink(missing_ok=True)
        raise
    return DataFile(name=file.name, rows=rows.num_rows, size=file.stat().st_size, stats=json.dumps(statistics(rows)))


def statistics(rows: pa.Table) -> dict[str, Any]:
    """What Delta keeps of a file: how many rows, the limits of each column that has an order, and its NULLs."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    for field in rows.schema:
        if pa.types.is_string(field.type) or pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type):
            limits = [_told(value) for value in pc.min_max(rows[field.name]).as_py().values()]
            if None not in limits:
                least[field.name], greatest[field.name] = limits
    nulls = {field.name: rows[field.name].null_count for field in rows.schema if not pa.types.is_nested(field.type)}
    return {"numRecords": rows.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return None if isinstance(value, str) and len(value) > LONGEST else value
