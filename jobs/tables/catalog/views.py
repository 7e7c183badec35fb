"""Creates the views of `schemas.views` in the schema that has the tables.

A view keeps a hash of its definition as a property. It is replaced only if that differs, because Databricks removes the
grants of a view that is replaced.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from dashboards.lake.sql_names import literal, source
from jobs.tables import named_tables
from jobs.tables.location import is_address, location
from jobs.tables.paths import TableName, table_path
from schemas.views import VIEWS, View

DEFINITION_PROPERTY = "regroup.definition"


def create_views(warehouse: str | Path) -> None:
    """Create the views that are missing or have another definition, if the tables have names; they exist."""
    place = location(warehouse)
    if place is None or is_address(place):
        return
    for view in VIEWS:
        name = TableName(source(place, view.name))
        if _stored_definition(name) != view.definition:
            names = {table.name: table_path(warehouse, table) for table in view.tables}
            SparkSession.active().sql(creation(name, view, view.sql(names))).collect()


def _stored_definition(name: TableName) -> str | None:
    if not SparkSession.active().catalog.tableExists(name):
        return None
    return named_tables.properties(name).get(DEFINITION_PROPERTY)


def creation(name: TableName, view: View, query: str) -> str:
    """Return the statement that creates or replaces the view with its comments."""
    described = ", ".join(f"`{column.name}` COMMENT {literal(column.comment)}" for column in view.columns)
    return (
        f"CREATE OR REPLACE VIEW {name} ({described}) COMMENT {literal(view.comment)} "
        f"TBLPROPERTIES ({literal(DEFINITION_PROPERTY)} = {literal(view.definition)}) AS {query}"
    )
