"""The arguments of `regroup incident`, apart from the command, which `regroup --help` need not import."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(incident: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    incident.add_argument("group", nargs="?", metavar="GROUP", help="group id")
    incident.add_argument("--cluster", metavar="NAME", help="name of the cluster, if several have the group")
    incident.add_argument(
        "--at", metavar="TIME", help="time of the rebalance, as for `why` (default: the newest episode)"
    )
    incident.add_argument("--generation", type=int, metavar="N", help="the rebalance to this generation or epoch")
    incident.add_argument(
        "--incarnation", type=int, metavar="N", help="incarnation of the group that has it (default: the present one)"
    )
    incident.add_argument("--episode", action="store_true", help="the whole episode of that rebalance")
    incident.add_argument(
        "--storm", metavar="ID|TIME", help="a storm instead of a group: its id, or a time, as for --at, within it"
    )
    incident.add_argument(
        "--format", choices=("markdown", "html", "json"), default="markdown", help="default: %(default)s"
    )
    incident.add_argument("--output", type=Path, metavar="FILE", help="file to write (default: print the document)")
    incident.add_argument(
        "--capture",
        type=Path,
        metavar="DIR|FILE",
        help="capture to put beside the --output, and to link with its size and SHA-256",
    )
