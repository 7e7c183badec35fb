"""Arrow types for the Spark SQL types that `schemas` uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from schemas.gold import (
    ABSENCE_COSTS,
    BY_GROUP,
    CAUSES,
    CHANGED_VALUES,
    DIFFERENCES,
    POD_CHANGES,
    VERDICT_SUMS,
)
from schemas.tables import RESOURCES, Table, struct_fields

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
}
TYPES |= {
    kind: pa.list_(pa.struct([(name, TYPES[field]) for name, field in struct_fields(kind)]))
    for kind in (RESOURCES, DIFFERENCES, CAUSES, BY_GROUP, VERDICT_SUMS, POD_CHANGES, CHANGED_VALUES, ABSENCE_COSTS)
}

GROUP = ("cluster", "group_id")
"""The columns that name a row's group."""


def row_type(table: Table) -> pa.StructType:
    """Return the type of one row of a table, with the columns in the table's order."""
    return pa.struct([(column.name, TYPES[column.type]) for column in table.columns])


def schema_of(table: Table) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return pa.schema(list(row_type(table)))


def timestamp_columns(table: Table) -> tuple[str, ...]:
    """Return the names of the table's TIMESTAMP columns."""
    return tuple(column.name for column in table.columns if column.type == "TIMESTAMP")


def stored(rows: Iterable[Mapping[str, Any]], table: Table) -> pa.Table:
    """Return rows as an Arrow table with the table's types.

    Args:
        rows: one mapping per row, with timestamps as milliseconds since the epoch.
        table: the table that the rows belong to.

    Raises:
        ValueError: a row lacks a column of the table, or has a column that the table lacks.
    """
    return pa.Table.from_struct_array(stored_rows(rows, table))


def stored_rows(rows: Iterable[Mapping[str, Any]], table: Table) -> pa.StructArray:
    """Return the rows that `stored` returns, as an array of structs.

    Raises:
        ValueError: a row lacks a column of the table, or has a column that the table lacks.
    """
    rows = list(rows)
    _check_columns(rows, table, table.names)
    maps = [column.name for column in table.columns if column.type.startswith("MAP")]
    if maps:
        # Arrow expects a map as a list of pairs.
        rows = [
            {**row, **{name: list(row[name].items()) for name in maps if isinstance(row.get(name), dict)}}
            for row in rows
        ]
    kinds = [field.with_type(_in_python(field.type)) for field in row_type(table)]
    return pa.array(rows, pa.struct(kinds)).cast(row_type(table))


def _in_python(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column whose timestamps are milliseconds."""
    return pa.timestamp("ms", tz="UTC") if kind == TYPES["TIMESTAMP"] else kind


class RowsOfGroups:
    """Rows of one table that are made one group after the other. The table has no MAP columns.

    They are kept as columns: millions of dicts would no longer be in the processor's caches when Arrow reads them.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._names = tuple(name for name in table.names if name not in GROUP)
        self._values_of = itemgetter(*self._names)
        self._columns: dict[str, list[Any]] = {name: [] for name in table.names}

    def __len__(self) -> int:
        return len(self._columns[self._names[0]])

    def add(self, cluster: str, group_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add the rows of one group, without the columns of `GROUP`, with timestamps as milliseconds since the epoch.

        Raises:
            ValueError: a row lacks another column of the table, or has a column that the table lacks.
        """
        if not rows:
            return
        if any(len(row) != len(self._names) for row in rows):
            _check_columns(rows, self._table, self._names)
        try:
            columns = list(zip(*map(self._values_of, rows), strict=True))
        except KeyError:
            _check_columns(rows, self._table, self._names)
            raise
        for name, value in zip(GROUP, (cluster, group_id), strict=True):
            self._columns[name] += [value] * len(rows)
        for name, values in zip(self._names, columns, strict=True):
            self._columns[name] += values

    def stored(self) -> pa.Table:
        """Return the rows as an Arrow table with the table's types."""
        arrays = [pa.array(self._columns[field.name], _in_python(field.type)) for field in row_type(self._table)]
        return pa.table(arrays, self._table.names).cast(schema_of(self._table))


def _check_columns(rows: Iterable[Mapping[str, Any]], table: Table, expected: Iterable[str]) -> None:
    """Raise ValueError for missing or unknown columns.

    Arrow ignores unknown keys and stores NULL for missing ones, so a misspelt key would go unnoticed.
    """
    names = frozenset(expected)
    for row in rows:
        if row.keys() != names:
            missing, unknown = sorted(names - row.keys()), sorted(row.keys() - names)
            raise ValueError(
                f"A row of {table.name} lacks the columns {missing} and has the unknown columns {unknown}."
            )
