"""Queries over whole tables: answered by DuckDB in this process, or by Spark where only Spark reads the tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from jobs.tables import named_tables
from jobs.tables.engine import connect, show
from jobs.tables.location import is_elsewhere
from jobs.tables.paths import TableName, table_path
from pipelines.arrow_types import TYPES
from schemas.tables import Table


def ask(warehouse: Path, query: str, tables: Sequence[Table]) -> pa.Table:
    """Return the result of SQL that both engines can run, with the tables' names in braces. Timestamps are UTC."""
    if is_elsewhere(warehouse):
        names = {table.name: TableName(table_path(warehouse, table)) for table in tables}
        found = named_tables.ask(query, names)
    else:
        with connect() as engine:
            for table in tables:
                show(engine, table.name, warehouse, table)
            found = engine.sql(query.format(**{table.name: table.name for table in tables})).to_arrow_table()
    utc = TYPES["TIMESTAMP"]
    kinds = [field.with_type(utc) if pa.types.is_timestamp(field.type) else field for field in found.schema]
    return found.cast(pa.schema(kinds))
