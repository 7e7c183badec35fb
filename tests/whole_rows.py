"""Tests write rows with only the columns they are about; `stored` takes only rows with all columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.tables import Table


def whole(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Return the row with NULL in every other column of the table."""
    return dict.fromkeys(table.names) | dict(row)


def of_table(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Return the columns of the row that the table has, for rows that are made alike for several tables."""
    return {name: value for name, value in row.items() if name in table.names}
