"""`regroup report`: what rebalances cost in the last days, by cause, group and storm, against the days before."""

from __future__ import annotations

import argparse
import sys
import time

from dashboards.answers.blocks import html, markdown
from dashboards.answers.report import blocks, report, report_values
from dashboards.urlstate import Window
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.lake import asked, print_json
from schemas.thresholds import DAY_MS

UNKNOWN = 1
"""Exit code if nothing is known of the range."""

MOST_DAYS = 366


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the report as Markdown, HTML or JSON. Return 0, or `UNKNOWN` if nothing is known of the range.

    Raises:
        UserError: no group is known, the tables cannot be read, or the number of days is out of range.
    """
    if not 1 <= args.days <= MOST_DAYS:
        raise UserError(f"--days {args.days} is out of range: it can be 1 to {MOST_DAYS}.")
    now_ms = time.time_ns() // 1_000_000
    window = Window(now_ms - args.days * DAY_MS, now_ms, is_live=False)
    found = asked(settings, lambda lake: report(lake, window))
    state = {"now_ms": now_ms, "stale_ms": settings.stale_ms}
    match args.format:
        case "json":
            print_json(report_values(found, **state))
        case "html":
            sys.stdout.write(html(blocks(found, **state), "Rebalances"))
        case _:
            sys.stdout.write(markdown(blocks(found, **state)))
    return 0 if found.is_observed else UNKNOWN
