"""The arguments of `regroup deploys`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def add_arguments(deploys: argparse.ArgumentParser, ranges: Sequence[str]) -> None:
    """Add the arguments. `ranges` are the values of `--last`."""
    deploys.add_argument("group", metavar="GROUP", nargs="?", help="group id (default: all groups)")
    deploys.add_argument("--cluster", metavar="NAME", help="only this cluster, or the one of the group")
    deploys.add_argument(
        "--last", choices=ranges, default="7d", help="range of time that ends now (default: %(default)s)"
    )
    deploys.add_argument("--compare", action="store_true", help="the group's newest deploy against the one before")
    deploys.add_argument("--json", action="store_true", help="print the answer as JSON")
