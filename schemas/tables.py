"""The definition of a table: names, Spark SQL types, key, clustering and a comment for every column.

This module imports no engine. Jobs turn a `Table` into a Delta table, workers into an Arrow schema, pages into a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCHEMA_VERSION = 1
"""Version stored in every table's properties: +1 with each change that an older Regroup could not write."""

VERSION_PROPERTY = "regroup.schema_version"

PRESENT = " NOT NULL"

RESOURCE = "STRUCT<name: STRING, index: INT>"
RESOURCES = f"ARRAY<{RESOURCE}>"


def schema_version(properties: Mapping[str, str]) -> int:
    """Return the schema version with which a table with these properties was last written."""
    return int(properties.get(VERSION_PROPERTY, SCHEMA_VERSION))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `type` is a Spark SQL type. `is_present` means that Regroup never writes NULL. Delta enforces this for key columns
    only, because it cannot add the constraint to an existing table.
    """

    name: str
    type: str
    comment: str
    is_present: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A Delta table.

    `key` is unique. `cluster_by` holds at most four liquid clustering columns, all indexed for data skipping. If it is
    empty, the table is small and written without Spark. Tables are clustered on Databricks only.
    """

    name: str
    layer: str
    key: tuple[str, ...]
    cluster_by: tuple[str, ...]
    comment: str
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        """Return the columns as Spark SQL; key columns are NOT NULL."""
        return ", ".join(f"`{c.name}` {c.type}{' NOT NULL' if c.name in self.key else ''}" for c in self.columns)

    @property
    def time(self) -> str | None:
        """Return the name of the event time column: the timestamp in `cluster_by`, or None if there is none."""
        kinds = {column.name: column.type for column in self.columns}
        return next((name for name in self.cluster_by if kinds[name] == "TIMESTAMP"), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)


def struct_fields(kind: str) -> tuple[tuple[str, str], ...]:
    """Return names and types of the fields of `ARRAY<STRUCT<name: TYPE, ...>>`, whose types are not nested."""
    fields = kind.removeprefix("ARRAY<STRUCT<").removesuffix(">>").split(", ")
    return tuple((name, field) for name, field in (each.split(": ") for each in fields))


def columns(text: str) -> tuple[Column, ...]:
    """Return the columns in a text with one per line: `name | type | comment` or `name | type NOT NULL | comment`."""
    rows = (map(str.strip, line.split("|", 2)) for line in text.strip().splitlines() if line.strip())
    return tuple(
        Column(name, kind.removesuffix(PRESENT), comment, is_present=kind.endswith(PRESENT))
        for name, kind, comment in rows
    )
