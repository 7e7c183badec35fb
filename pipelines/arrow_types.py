"""Arrow's types for the Spark SQL types that `schemas` uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from schemas.gold import DIFFERENCES
from schemas.tables import RESOURCES, Table

_DIFFERENCE = pa.struct(
    [
        ("attribute", pa.string()),
        ("value", pa.string()),
        ("share", pa.float64()),
        ("baseline", pa.float64()),
        ("lift", pa.float64()),
    ]
)
_RESOURCE = pa.struct([("name", pa.string()), ("index", pa.int32())])

TYPES: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "MAP<STRING,STRING>": pa.map_(pa.string(), pa.string()),
    RESOURCES: pa.list_(_RESOURCE),
    DIFFERENCES: pa.list_(_DIFFERENCE),
}


def row_type(table: Table) -> pa.StructType:
    """One row of a table, columns in the table's order."""
    return pa.struct([(column.name, TYPES[column.type]) for column in table.columns])


def instants(table: Table) -> tuple[str, ...]:
    """The table's TIMESTAMP columns."""
    return tuple(column.name for column in table.columns if column.type == "TIMESTAMP")


def microseconds(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """A row of milliseconds with its instants as Arrow stores them."""
    return _microseconds(row, instants(table))


def _microseconds(row: Mapping[str, Any], times: Iterable[str]) -> dict[str, Any]:
    return {**row, **{name: row[name] * 1000 for name in times if row.get(name) is not None}}


def as_stored(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """A row of milliseconds as Arrow takes it: instants in microseconds, maps as pairs."""
    return _as_stored(row, instants(table))


def _as_stored(row: Mapping[str, Any], times: Iterable[str]) -> dict[str, Any]:
    known = _microseconds(row, times)
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in known.items()}


def stored(rows: Iterable[Mapping[str, Any]], table: Table) -> pa.Table:
    """Rows of milliseconds as the table stores them."""
    times = instants(table)
    return pa.Table.from_struct_array(pa.array([_as_stored(row, times) for row in rows], row_type(table)))
