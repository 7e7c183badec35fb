"""`regroup report`: what rebalances cost, by cause, cluster, team, group and storm, against the time before."""

from __future__ import annotations

import argparse
import sys
import time

from dashboards.answers.blocks import html, markdown
from dashboards.answers.report import blocks, report, report_values
from dashboards.answers.weekly import check_team, in_zone, of_days, of_week
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.lake import asked, print_json

UNKNOWN = 1
"""Exit code if nothing is known of the range."""

MOST_DAYS = 366


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the report as Markdown, HTML or JSON. Return 0, or `UNKNOWN` if nothing is known of the range.

    Raises:
        UserError: no group is known, the tables cannot be read, or the range, the zone or the team is not valid.
    """
    if not 1 <= args.days <= MOST_DAYS:
        raise UserError(f"--days {args.days} is out of range: it can be 1 to {MOST_DAYS}.")
    zone = args.zone or (settings.report.zone if settings.report else "UTC")
    try:
        check_team(settings.teams, args.team)
        with in_zone(zone):
            return _printed(settings, args)
    except ValueError as error:
        raise UserError(str(error)) from None


def _printed(settings: Settings, args: argparse.Namespace) -> int:
    now_ms = time.time_ns() // 1_000_000
    chosen = of_days(args.days, now_ms) if args.week is None else of_week(args.week, now_ms)
    found = asked(
        settings,
        lambda lake: report(
            lake, chosen.window, before=chosen.before, week=chosen.name, teams=settings.teams, team=args.team
        ),
    )
    state = {"now_ms": now_ms, "stale_ms": settings.stale_ms}
    match args.format:
        case "json":
            print_json(report_values(found, **state))
        case "html":
            sys.stdout.write(html(blocks(found, **state), "Rebalances"))
        case _:
            sys.stdout.write(markdown(blocks(found, **state)))
    return 0 if found.is_observed else UNKNOWN
