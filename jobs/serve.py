"""`regroup serve`: serve only the pages."""

from __future__ import annotations

import argparse
from dataclasses import replace

from dashboards.app import serve
from dashboards.lake.address import address
from dashboards.lake.databricks_tables import lake as databricks
from dashboards.lake.lake import LakeError, LocalLake, WarmLake
from jobs.config.declared import secret
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.pages import access
from jobs.tables.location import location


def run(settings: Settings, _: argparse.Namespace) -> int:
    """Serve the pages of the warehouse, or of the settings' [databricks], until Ctrl-C.

    Raises:
        UserError: other machines could read the pages without access control, or the package for Databricks SQL is not
            installed.
    """
    allowed = access(settings)
    return serve(_lake(settings), host=settings.host, port=settings.port, access=allowed)


def _lake(settings: Settings) -> WarmLake:
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
