"""A warehouse with the history of a large cluster, for benchmarks of its readers: silver and gold, no Spark, no Kafka.

The rows of each day are one file, those of the last day one file per hour, in the order and the row groups of files
that `maintain` merges.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import WriterProperties, write_deltalake

from bench.fleet.fleet import DAY, HOUR, Columns, fleet_of, generations_of
from bench.fleet.gold import gold_of
from bench.fleet.silver import groups_of, silver_of
from bench.fleet.verdicts import verdicts_of
from jobs.retention.compact import ROWS_TOGETHER
from pipelines.arrow_types import TYPES
from schemas.bronze import ADMIN_OBSERVATIONS, QUARANTINE
from schemas.gold import VERDICTS
from schemas.silver import GROUPS
from schemas.tables import Table

WRITTEN = WriterProperties(compression="ZSTD", max_row_group_size=ROWS_TOGETHER)


def write_history(folder: Path, *, groups: int, days: int, end: int, seed: int = 1) -> dict[str, int]:
    """Write the tables that the pages read, up to `end` (epoch milliseconds); return the number of rows of each."""
    rng = np.random.default_rng(seed)
    fleet = fleet_of(rng, groups, end - days * DAY)
    generations = generations_of(rng, fleet, days, end)
    rows: dict[str, int] = {}

    def write(table: Table, columns: Columns, length: int) -> None:
        if length or not (folder / table.name).exists():
            made = _table(table, columns, length)
            ordered = made.sort_by([(name, "ascending") for name in table.cluster_by]) if table.cluster_by else made
            write_deltalake(str(folder / table.name), ordered, mode="append", writer_properties=WRITTEN)
        rows[table.name] = rows.get(table.name, 0) + length

    edges = [*range(end - days * DAY, end - DAY + 1, DAY), *range(end - DAY + HOUR, end + 1, HOUR)]
    for first, last in pairwise(edges):
        part = generations.of((generations.joined_at >= first) & (generations.joined_at < last))
        for table, columns, length in silver_of(rng, fleet, part):
            write(table, columns, length)
        write(VERDICTS, *verdicts_of(rng, fleet, part))
    write(GROUPS, *groups_of(fleet, generations, end))
    for table, columns, length in gold_of(rng, fleet, days, end):
        write(table, columns, length)
    for table in (QUARANTINE, ADMIN_OBSERVATIONS):
        write(table, {}, 0)
    return rows


def _table(table: Table, columns: Mapping[str, Any], length: int) -> pa.Table:
    """Return a table with NULL in columns without a value. Numbers of a TIMESTAMP column are milliseconds."""
    arrays, schema = [], []
    for column in table.columns:
        kind = TYPES[column.type]
        if length == 0 or column.name not in columns:
            # A table without rows has no NULL keys either.
            array = pa.nulls(length, kind)
        else:
            value = columns[column.name]
            array = value if isinstance(value, pa.Array) else _array(value, length)
            array = array.cast(pa.timestamp("ms", tz="UTC")).cast(kind) if column.type == "TIMESTAMP" else array
        arrays.append(array.cast(kind) if array.type != kind else array)
        schema.append(pa.field(column.name, kind, nullable=column.name not in table.key))
    return pa.Table.from_arrays(arrays, schema=pa.schema(schema))


def _array(value: Any, length: int) -> pa.Array:
    if not isinstance(value, np.ndarray | list):
        return pa.repeat(pa.scalar(value), length)
    return pa.array(value, from_pandas=True)
