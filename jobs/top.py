"""`regroup top`: the groups that lost most in a range of time."""

from __future__ import annotations

import argparse
import sys
import time

from dashboards.answers.top import RANGES, top, top_text, top_values
from dashboards.urlstate import Window
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.lake import asked, print_json

UNKNOWN = 1
"""Exit code if nothing is known of the range."""

MOST_ROWS = 1_000


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the groups as text or JSON. Return 0, or `UNKNOWN` if nothing is known of the range.

    Raises:
        UserError: no group is known, the tables cannot be read, or the number of groups is out of range.
    """
    if not 1 <= args.rows <= MOST_ROWS:
        raise UserError(f"--rows {args.rows} is out of range: it can be 1 to {MOST_ROWS:,}.")
    now_ms = time.time_ns() // 1_000_000
    width = RANGES.get(args.last)
    window = None if width is None else Window(now_ms - width, now_ms, is_live=True)
    found = asked(settings, lambda lake: top(lake, window, args.rows))
    state = {"now_ms": now_ms, "stale_ms": settings.stale_ms}
    if args.json:
        print_json(top_values(found, **state))
    else:
        sys.stdout.write(top_text(found, **state))
    return 0 if found.is_observed else UNKNOWN
