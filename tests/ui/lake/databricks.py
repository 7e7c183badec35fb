"""A Databricks SQL warehouse for tests: the connector's calls, answered from the Delta tables of a folder.

Spark answers, because Databricks SQL is Spark SQL in ANSI mode; or, in a tenth of the time, DuckDB answers a statement
that sqlglot translates. Parameters are converted as by the connector: to a text and a type.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import sqlglot
from databricks.sql.exc import ServerOperationError
from databricks.sql.parameters.native import dbsql_parameter_from_primitive
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp

from dashboards.lake.databricks_lake import DatabricksLake
from dashboards.lake.databricks_warehouse import Warehouse

READ = {"STRING": str, "INT": int, "BIGINT": int, "DOUBLE": float, "TIMESTAMP": datetime.fromisoformat}
"""The server's conversion of a parameter's text; Spark accepts only literals."""


class Engine(Protocol):
    location: str

    def response(self, text: str, parameters: dict[str, Any]) -> pa.Table:
        """Return the result. Raises `ServerOperationError` for statements that the warehouse refuses."""


class SparkEngine:
    """A folder by its path, or as a schema of Spark's catalog, which supports everything and is slower. Without a
    schema, the versions come from the folder itself, and Spark reads the newest.
    """

    def __init__(self, spark: SparkSession, folder: Path, schema: str = "") -> None:
        self._spark, self._folder, self._schema = spark, folder, schema
        self.location = f"spark_catalog.{schema}" if schema else str(folder)
        # Delta's parser does not know parameters, so Spark binds them afterwards.
        spark.conf.set("spark.sql.legacy.parameterSubstitution.constantsOnly", "true")
        if schema:
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.location}")
            for table in folder.glob("*/_delta_log"):
                spark.sql(f"CREATE TABLE {self.location}.{table.parent.name} USING delta LOCATION '{table.parent}'")

    def response(self, text: str, parameters: dict[str, Any]) -> pa.Table:
        if not self._schema:
            if (described := re.fullmatch(r"DESCRIBE (HISTORY|DETAIL) delta\.`.*/(\w+)`( LIMIT 1)?", text)) is not None:
                return DESCRIBED[described[1]](self._folder, described[2])
            text = text.replace(" VERSION AS OF 0", "")
            assert "VERSION" not in text
        try:
            return self._spark.sql(text, args=parameters).toArrow()
        except PySparkException as error:
            raise ServerOperationError(str(error)) from None


class DuckEngine:
    """A folder as a schema without an owner."""

    def __init__(self, folder: Path, location: str = "main.regroup") -> None:
        self._folder, self.location = folder, location

    def response(self, text: str, parameters: dict[str, Any]) -> pa.Table:
        if text.startswith("DESCRIBE SCHEMA"):
            return pa.table({})
        if (
            described := re.fullmatch(r"DESCRIBE (HISTORY|DETAIL) `main`\.`regroup`\.`(\w+)`( LIMIT 1)?", text)
        ) is not None:
            return DESCRIBED[described[1]](self._folder, described[2])
        translated, tables = _translated(text)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("CREATE MACRO from_texts(text) AS from_json(text, '[\"VARCHAR\"]')")
            for name, version in tables:
                connection.register(f"{name} {version}", self._dataset(name, version))
            try:
                return connection.sql(translated, params=parameters).to_arrow_table()
            except duckdb.Error as error:
                raise ServerOperationError(str(error)) from None

    def _dataset(self, name: str, version: int) -> ds.Dataset:
        table = _table(self._folder, name)
        if version > table.version():
            raise ServerOperationError(f"[DELTA_VERSION_NOT_FOUND] Cannot time travel to version {version}.")
        table.load_as_version(version)
        return table.to_pyarrow_dataset()


@cache
def _translated(text: str) -> tuple[str, frozenset[tuple[str, int]]]:
    """Return a statement for DuckDB, and the tables in it with their versions; each is named after both."""
    tables = set()

    def reworded(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table) and node.catalog:
            version = int(node.args["version"].expression.name)
            tables.add((node.name, version))
            return exp.to_table(f'"{node.name} {version}"')
        if isinstance(node, exp.FromJson):
            return exp.Anonymous(this="from_texts", expressions=[node.this])
        if isinstance(node, exp.Anonymous) and node.name.lower() == "xxhash64":
            return exp.Anonymous(this="hash", expressions=node.expressions)
        if isinstance(node, exp.Quantile):
            return exp.Anonymous(this="quantile_cont", expressions=[node.this, node.args["quantile"]])
        return node

    translated = sqlglot.parse_one(text, read="databricks").transform(reworded).sql("duckdb")
    return translated, frozenset(tables)


def _table(folder: Path, name: str) -> deltalake.DeltaTable:
    path = str(folder / name)
    if not deltalake.DeltaTable.is_deltatable(path):
        raise ServerOperationError(f"[TABLE_OR_VIEW_NOT_FOUND] The table or view `{name}` cannot be found.")
    return deltalake.DeltaTable(path)


def _newest(folder: Path, name: str) -> pa.Table:
    (newest,) = _table(folder, name).history(1)
    at = pa.array([datetime.fromtimestamp(newest["timestamp"] / 1000, UTC)], pa.timestamp("us", "UTC"))
    return pa.table({"version": pa.array([newest["version"]], pa.int64()), "timestamp": at})


def _detail(folder: Path, name: str) -> pa.Table:
    properties = list(_table(folder, name).metadata().configuration.items())
    return pa.table({"properties": pa.array([properties], pa.map_(pa.string(), pa.string()))})


DESCRIBED = {"HISTORY": _newest, "DETAIL": _detail}


class Databricks:
    """Opens connections of an engine. `asked` has every statement with its parameters, in order."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.opened: list[Connection] = []

    def lake(self, fresh_seconds: float = 3600) -> DatabricksLake:
        warehouse = Warehouse(
            server_hostname="https://workspace.invalid/", http_path="/sql/1.0/warehouses/w",
            tables=self.engine.location, token="a token",
        )  # fmt: skip
        return DatabricksLake(warehouse, fresh_seconds=fresh_seconds, opened=self.connect)

    def connect(self, _: Warehouse) -> Connection:
        self.opened.append(Connection(self))
        return self.opened[-1]

    @property
    def questions(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the statements that read rows."""
        return [each for each in self.asked if not each[0].startswith("DESCRIBE")]


class Connection:
    """As much of `databricks.sql.client.Connection` as the pages call."""

    def __init__(self, of: Databricks) -> None:
        self._of = of
        self.is_closed = False

    def cursor(self) -> Cursor:
        return Cursor(self._of)

    def close(self) -> None:
        self.is_closed = True


class Cursor:
    def __init__(self, of: Databricks) -> None:
        self._of = of

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, operation: str, parameters: dict[str, Any] | None = None) -> Cursor:
        given = parameters or {}
        self._of.asked.append((operation, given))
        self._response = self._of.engine.response(operation, {name: _received(value) for name, value in given.items()})
        return self

    def fetchall_arrow(self) -> pa.Table:
        return self._response


def _received(value: Any) -> Any:
    sent = dbsql_parameter_from_primitive(value).as_tspark_param(named=False)
    return READ[sent.type](sent.value.stringValue)
