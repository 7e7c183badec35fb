"""Names and texts in the SQL of Spark and Databricks, and their errors for a name that does not exist."""

from __future__ import annotations

import re

ABSENT = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "PATH_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_ONLY_OPERATION",
)
"""Error conditions of a missing table, or of a folder without a table."""
PARAMETER = re.compile(r":(p_\w+)")
"""A parameter in a statement of `databricks_sql`, without the colon."""

NO_SCHEMA = ("SCHEMA_NOT_FOUND", "NO_SUCH_CATALOG", "NO_SUCH_NAMESPACE", "CATALOG_NOT_FOUND")


def source(location: str, name: str) -> str:
    """Return the SQL name of a table in `catalog.schema`, or of a Delta folder in the folder `location`."""
    if "/" in location:
        return f"delta.{quoted(f'{location}/{name}')}"
    return quoted(*location.split("."), name)


def quoted(*names: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def literal(text: str) -> str:
    """Return the text as a literal. Delta's DELETE and CREATE accept no parameters."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
