"""The tables that the pages and the answers read: of a folder, an object store or a Databricks SQL warehouse."""

from __future__ import annotations

from dataclasses import replace

from dashboards.lake.address import address
from dashboards.lake.databricks_tables import lake as databricks
from dashboards.lake.lake import LakeError, LocalLake, WarmLake
from jobs.config.declared import secret
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.tables.location import location


def lake(settings: Settings) -> WarmLake:
    """Return the tables of the warehouse, or of the settings' [databricks].

    Raises:
        UserError: the address or the connection is not valid, or the package for Databricks SQL is not installed.
    """
    declared = settings.databricks
    if declared is None:
        # `jobs.cli` refuses a schema. Pages read the files of an address themselves.
        there = location(settings.warehouse)
        try:
            return LocalLake(settings.warehouse if there is None else address(there))
        except ValueError as error:
            raise UserError(str(error)) from None
    hidden = {key: secret(f"{key} in [databricks]", getattr(declared, key)) for key in ("token", "client_secret")}
    try:
        return databricks(replace(declared, **hidden))
    except LakeError as error:
        raise UserError(str(error)) from None
