"""The tables of a warehouse as the pages' queries see them, also where only Spark reads the tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.lake.lake import Lake, LocalLake
from dashboards.lake.sql_names import PARAMETER, literal
from jobs.tables.location import location


def lake_of(warehouse: Path, *, stale_seconds: float = 0, only: Collection[str] | None = None, **options: Any) -> Lake:
    """Return the tables for queries. `options` are those of `LocalLake`.

    Queries see each commit at once; where only Spark reads the tables, they may see the state of `stale_seconds` ago.
    There, each query looks for newer versions of the tables named in `only`, by default of all, about a second each.
    """
    there = location(warehouse)
    if there is None:
        return LocalLake(warehouse, fresh_seconds=0, **options)
    # Imported on use, because sqlglot takes tens of MB, which `up` would keep.
    databricks = import_module("dashboards.lake.databricks_lake")
    tables = Warehouse(server_hostname="", http_path="", tables=there)
    found: Lake = databricks.DatabricksLake(tables, fresh_seconds=stale_seconds, opened=_Connection, only=only)
    return found


def with_literals(text: str, parameters: Mapping[str, Any]) -> str:
    """Return a statement of `databricks_sql` with its parameters as literals.

    Delta's parser for Spark leaves parameters unbound, over Spark Connect with every setting.
    """
    return PARAMETER.sub(lambda found: _literal(parameters[found[1]]), text)


def _literal(value: str | float | datetime | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"TIMESTAMP {literal(value.isoformat())}"
    if isinstance(value, float):
        return f"CAST({literal(repr(value))} AS DOUBLE)"
    return literal(value) if isinstance(value, str) else str(value)


class ServerOperationError(Exception):
    """Spark refused a statement. The lake knows this error by the name that Databricks SQL gives it."""


class _Connection:
    """A connection to Spark with the calls of databricks-sql-connector, whose SQL is Spark's."""

    def __init__(self, _: Warehouse) -> None:
        self._spark = SparkSession.active()

    def cursor(self) -> Self:
        return self

    def close(self) -> None:
        """Do nothing, because the session continues."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because the session continues."""

    def execute(self, text: str, parameters: Mapping[str, Any] | None = None) -> None:
        try:
            self._found = self._spark.sql(with_literals(text, parameters or {})).toArrow()
        except PySparkException as error:
            raise ServerOperationError(str(error)) from None

    def fetchall_arrow(self) -> pa.Table:
        return self._found
