"""`regroup serve`: serve only the pages."""

from __future__ import annotations

import argparse

from dashboards.app import serve
from jobs.config.settings import Settings
from jobs.lake import lake
from jobs.pages import access


def run(settings: Settings, _: argparse.Namespace) -> int:
    """Serve the pages of the warehouse, or of the settings' [databricks], until Ctrl-C.

    Raises:
        UserError: other machines could read the pages without access control, or the package for Databricks SQL is not
            installed.
    """
    allowed = access(settings)
    return serve(lake(settings), host=settings.host, port=settings.port, access=allowed, teams=settings.teams)
