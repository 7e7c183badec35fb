"""The arguments of the commands that answer a question from the tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from jobs.deploys.arguments import add_arguments as add_deploys
from jobs.incidents.arguments import add_arguments

RANGES = ("15m", "1h", "6h", "24h", "7d", "all")
"""Ranges of `regroup top` and `deploys`: those of the pages, and everything that is known."""


def add_answers(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add the commands that answer a question from the tables."""
    why = add("why", "say why a group rebalanced: verdict, who, cost, what would have avoided it, proof")
    advise = add("advise", "say what a group should change, what that saves, and what to paste")
    top = add("top", "list the groups that lost most in a range of time")
    health = add(
        "health", "say whether the tables can be trusted: how current they are, what was not read, what failed"
    )
    for of_group in (why, advise):
        of_group.add_argument("group", metavar="GROUP", help="group id")
        of_group.add_argument("--cluster", metavar="NAME", help="name of the cluster, if several have the group")
    for command in (why, advise, top, health):
        command.add_argument("--json", action="store_true", help="print the answer as JSON")
    top.add_argument("--last", choices=RANGES, default="24h", help="range of time that ends now (default: %(default)s)")
    top.add_argument("--rows", type=int, default=20, metavar="N", help="number of groups (default: %(default)s)")
    text = "list deploys: cost against those before, time to stable, who did not come back"
    add_deploys(add("deploys", text), RANGES)
    report = add("report", "write a report: what rebalances cost by cause, cluster, team, group and storm")
    _report_range(report.add_mutually_exclusive_group())
    report.add_argument("--team", default="", metavar="NAME", help="only groups of this team; none: of no team")
    report.add_argument(
        "--zone", metavar="NAME", help="zone of times and weeks (default: that of [report] in the settings, else UTC)"
    )
    report.add_argument(
        "--format", choices=("markdown", "html", "json"), default="markdown", help="default: %(default)s"
    )
    text = "write a document about one rebalance, episode or storm: what happened, why, its cost, and what to change"
    add_arguments(add("incident", text))
    mcp = add("mcp", "answer an assistant's questions over standard input and output (Model Context Protocol)")
    mcp.add_argument(
        "--pages", metavar="URL", help="ask these pages instead of the tables (token: REGROUP_PAGES_TOKEN)"
    )
    why.add_argument(
        "--at",
        metavar="TIME",
        help="time of the rebalance: 12:03 (the last one, UTC) or 2026-11-21T12:03:07Z (default: the newest rebalance)",
    )


def _report_range(chosen: argparse._MutuallyExclusiveGroup) -> None:
    chosen.add_argument("--days", type=int, default=7, metavar="N", help="the last N days (default: %(default)s)")
    chosen.add_argument(
        "--week",
        nargs="?",
        const="1",
        metavar="N",
        help="a calendar week, Monday 00:00 to Monday 00:00 in --zone: N weeks before this one (default: 1, the last "
        "whole week; 0: this week so far), or a name such as 2026-W47",
    )
