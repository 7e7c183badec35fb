"""Reads the tables of a schema through a Databricks SQL warehouse, like `LocalLake` for a folder. Never writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from dashboards.lake.databricks_connection import Connections, connect, is_response
from dashboards.lake.databricks_sql import bound, statement
from dashboards.lake.databricks_versions import Versions, WarehouseVersion
from dashboards.lake.databricks_warehouse import Warehouse
from dashboards.lake.lake import CELLS, TABLES, LakeError, Parameter, Rows, Tables, frozen, milliseconds, refuse_newer
from dashboards.lake.query_cache import QueryCache, rows_of
from dashboards.lake.sums import table_of

FRESH_SECONDS = 10.0
"""Reading the versions takes one statement per table, and the warehouse must be running."""


class DatabricksLake:
    """Tables read through a Databricks SQL warehouse. Thread-safe.

    Each query is one statement over known versions. Results are therefore cached by (versions, query), and all parts of
    a page show the same state.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        *,
        fresh_seconds: float = FRESH_SECONDS,
        opened: Callable[[Warehouse], Any] = connect,
        only: Collection[str] | None = None,
    ) -> None:
        """Prepare the connections. `only`: the names of the tables that queries will read, by default all."""
        self._location = warehouse.location
        self._connections = Connections(warehouse, opened)
        names = [table.name for table in TABLES if only is None or table.name in only]
        self._versions = Versions(self._connections, self._location, names, fresh_seconds)
        self._query_cache = QueryCache(CELLS)

    def warm(self) -> None:
        """Read the versions now, so that the first page need not wait for them."""
        self._versions.get()

    def versions(self) -> Mapping[str, int]:
        return {name: version.number for name, version in self._versions.get().items()}

    def changed_at(self) -> Mapping[str, int]:
        return {name: version.changed_at for name, version in self._versions.get().items()}

    def query(
        self,
        sql: str,
        tables: Tables,
        cap: int,
        parameters: Mapping[str, Parameter],
        prefixes: tuple[str, ...] | None = None,
    ) -> Rows:
        question = (sql, tuple(tables), cap, parameters, prefixes)
        known = self._versions.get()
        try:
            return self._asked(known, *question)
        except LakeError as error:
            if not is_response(error.__cause__):
                raise
            # The version was vacuumed or the table recreated: retry with the current versions.
            newer = self._versions.renewed()
            if all(newer.get(name) == known.get(name) for name in map(table_of, tables)):
                raise
            return self._asked(newer, *question)

    def _asked(
        self,
        known: Mapping[str, WarehouseVersion],
        sql: str,
        tables: tuple[str, ...],
        cap: int,
        parameters: Mapping[str, Parameter],
        prefixes: tuple[str, ...] | None,
    ) -> Rows:
        of = {name: known[table_of(name)] for name in tables if table_of(name) in known}
        refuse_newer({table_of(name): version.schema_version for name, version in of.items()})
        if len(of) < len(tables):
            return Rows([], is_capped=False)
        question = (sql, cap, frozen(parameters), prefixes)

        def response() -> Rows:
            numbers = {name: version.number for name, version in of.items()}
            text = statement(sql, numbers, self._location, parameters, prefixes)
            found = milliseconds(self._connections.ask(text, bound(text, {**parameters, "cap": cap + 1}, prefixes)))
            return rows_of(found, cap)

        return self._query_cache.get(question, of, response)
