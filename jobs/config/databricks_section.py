"""The [databricks] section of the settings: the SQL warehouse that the pages query."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dashboards.lake.databricks_warehouse import Warehouse
from jobs.config.declared import all_typed, quoted_value, refuse_unknown
from jobs.config.errors import UserError

WANTED = {
    "server_hostname": "dbc-0123.cloud.databricks.com",
    "http_path": "/sql/1.0/warehouses/0123",
    "tables": "/Volumes/main/regroup/warehouse",
}
"""Required keys of [databricks], each with an example."""
WAYS_IN = ((True, False, False), (False, True, True))
"""Allowed combinations of `token`, `client_id` and `client_secret`."""


def databricks_section(declared: Any) -> Warehouse | None:
    """Return the SQL warehouse that [databricks] describes; None without this section.

    Raises:
        UserError: a key is unknown or missing, or the credentials are incomplete.
    """
    if declared is None:
        return None
    section = "[databricks]"
    if not isinstance(declared, dict):
        raise UserError(f"databricks must be a table: write {section} on a line of its own.")
    refuse_unknown(declared, {f.name for f in fields(Warehouse)}, section)
    for key, such_as in WANTED.items():
        if not declared.get(key):
            raise UserError(f'{section} has no {key}: add {key} = "{such_as}".')
    if "/" not in str(declared["tables"]) and str(declared["tables"]).count(".") != 1:
        raise UserError(
            f"In {section}, tables must be catalog.schema or a folder, but is {quoted_value(declared['tables'])}."
        )
    if tuple(bool(declared.get(key)) for key in ("token", "client_id", "client_secret")) not in WAYS_IN:
        raise UserError(f'{section} needs token = "env:NAME", or client_id and client_secret of a service principal.')
    return Warehouse(**all_typed(Warehouse, declared, section))
