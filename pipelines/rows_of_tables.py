"""Rows of several tables in one frame: a struct column for each table. Each row fills one of these columns.

A function that maps Arrow batches to Arrow batches returns one frame. This form lets it return rows of all tables in
one pass over the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.arrow_types import row_type, stored_rows
from schemas.rows import ReassignmentRows, SilverOfGroup, SilverRows
from schemas.tables import Table

Row = Mapping[str, Any]


def by_table(rows: SilverRows | SilverOfGroup | ReassignmentRows) -> dict[str, list[Row]]:
    """Return typed rows as a dict with table names as keys."""
    return cast("dict[str, list[Row]]", rows)


def ddl(tables: Sequence[Table]) -> str:
    """Return the struct columns as Spark DDL."""
    columns = {table.name: ", ".join(f"`{c.name}`: {c.type}" for c in table.columns) for table in tables}
    return ", ".join(f"{name} STRUCT<{fields}>" for name, fields in columns.items())


def types(tables: Sequence[Table]) -> dict[str, pa.DataType]:
    """Return the struct columns as Arrow types."""
    return {table.name: row_type(table) for table in tables}


def batches(rows: Mapping[str, pa.Array], kinds: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Yield one batch for each non-empty array of structs; only the array's column is filled, the others are NULL."""
    schema = pa.schema(list(kinds.items()))
    for name, array in rows.items():
        if len(array):
            columns = [array if column == name else pa.nulls(len(array), kind) for column, kind in kinds.items()]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def stored_batches(rows: Mapping[str, Iterable[Row]], tables: Sequence[Table]) -> Iterator[pa.RecordBatch]:
    """Yield rows by table name as batches with these tables' columns; the rows have timestamps in milliseconds."""
    return batches({table.name: stored_rows(rows[table.name], table) for table in tables}, types(tables))


def table_of(frame: DataFrame, table: Table) -> DataFrame:
    """Return the rows of one table."""
    return frame.where(F.col(table.name).isNotNull()).select(f"{table.name}.*")


def rows_of(found: pa.Table, table: Table) -> pa.Table:
    """Return the rows of one table from a collected frame."""
    return pa.Table.from_struct_array(found.column(table.name).combine_chunks().drop_null())
