"""What a table is: names, Spark SQL types, key, clustering and the comment that every column carries.

No engine is imported here: jobs turn a `Table` into a Delta table, workers into an Arrow schema, pages into a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCHEMA_VERSION = 1
"""Written into every table's properties; +1 with each change an older Regroup could not write."""

VERSION_PROPERTY = "regroup.schema_version"

PRESENT = " NOT NULL"

RESOURCE = "STRUCT<name: STRING, index: INT>"
RESOURCES = f"ARRAY<{RESOURCE}>"


def schema_version(properties: Mapping[str, str]) -> int:
    """The version of the schema that a table with these properties was last written with."""
    return int(properties.get(VERSION_PROPERTY, SCHEMA_VERSION))


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is Spark SQL. `is_present`: Regroup writes no NULL; Delta enforces that for key columns only, because it
    cannot add the constraint to a table that exists.
    """

    name: str
    type: str
    comment: str
    is_present: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`key` is unique; `cluster_by` are the liquid clustering columns (at most four, all indexed for data skipping;
    none: the table is small, and written without Spark). Only Databricks clusters.
    """

    name: str
    layer: str
    key: tuple[str, ...]
    cluster_by: tuple[str, ...]
    comment: str
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        """The columns as Spark SQL, key columns NOT NULL."""
        return ", ".join(f"`{c.name}` {c.type}{' NOT NULL' if c.name in self.key else ''}" for c in self.columns)

    @property
    def time(self) -> str | None:
        """When what a row tells of happened: the instant that the table is clustered by."""
        kinds = {column.name: column.type for column in self.columns}
        return next((name for name in self.cluster_by if kinds[name] == "TIMESTAMP"), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)


def columns(text: str) -> tuple[Column, ...]:
    """One column a line: `name | type | comment` or `name | type NOT NULL | comment`."""
    rows = (map(str.strip, line.split("|", 2)) for line in text.strip().splitlines() if line.strip())
    return tuple(
        Column(name, kind.removesuffix(PRESENT), comment, is_present=kind.endswith(PRESENT))
        for name, kind, comment in rows
    )
