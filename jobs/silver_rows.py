"""Rows of silver and gold read without Spark: instants as milliseconds, only what is asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from jobs.delta_io import table_path
from schemas.tables import Table

NAMED = 2_000
"""Up to so many groups are named in a condition, which lets files be skipped."""


def rows(
    warehouse: Path, table: Table, columns: Sequence[str], *, where: pc.Expression | None = None
) -> list[dict[str, Any]]:
    """Rows of a table as it stands; none where it does not exist yet."""
    path = table_path(warehouse, table)
    if not DeltaTable.is_deltatable(path):
        return []
    table_of = DeltaTable(path).to_pyarrow_table(columns=list(columns), filters=where)
    found: list[dict[str, Any]] = milliseconds(table_of).to_pylist()
    return found


def milliseconds(found: pa.Table) -> pa.Table:
    """Instants as numbers: milliseconds since the epoch."""
    for place, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            micro = found.column(place).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
            found = found.set_column(place, field.name, pc.divide(micro, 1000))
    return found


def instant(ms: int) -> pa.Scalar:
    """For conditions on a TIMESTAMP column."""
    return pa.scalar(ms * 1000, pa.timestamp("us", tz="UTC"))


def moment(ms: int) -> datetime:
    """The same for SQL."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def among(groups: Collection[str]) -> pc.Expression:
    """A condition that holds for these groups of any cluster; for all where there are too many to name."""
    return (
        pc.field("group_id").isin(pa.array(sorted(groups), pa.string()))
        if len(groups) <= NAMED
        else pc.scalar(value=True)
    )
