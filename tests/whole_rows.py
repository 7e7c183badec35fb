"""Rows that tests write with the columns that they are about; `stored` takes whole rows only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.tables import Table


def whole(row: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Return the row with NULL in every other column of the table."""
    return dict.fromkeys(table.names) | dict(row)
