"""`regroup serve`: the pages alone."""

from __future__ import annotations

import argparse

from dashboards.app import serve
from jobs.pages import access
from jobs.settings import Settings


def run(settings: Settings, _: argparse.Namespace) -> int:
    """Serve the warehouse's pages until Ctrl-C.

    Raises:
        UserError: others than this machine could read them, and nothing guards them.
    """
    return serve(warehouse=settings.warehouse, host=settings.host, port=settings.port, access=access(settings))
