"""`regroup deploys [GROUP]`: what deploys cost, how long they took, and who did not come back."""

from __future__ import annotations

import argparse
import sys
import time

from dashboards.answers.deploys import (
    MOST_ROWS,
    compared_deploys,
    compared_text,
    compared_values,
    deploys,
    deploys_text,
    deploys_values,
)
from dashboards.answers.top import RANGES
from dashboards.urlstate import Window
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.lake import asked, print_json

NOTHING = 1
"""Exit code if no deploy is known in the range or, with `--compare`, no two deploys of the group."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the deploys, or the comparison, as text or JSON. Return 0, or `NOTHING` if there are none.

    Raises:
        UserError: no group is known, or not this one; deploys are not analyzed yet; the tables cannot be read; or
            `--compare` is without a group.
    """
    now_ms = time.time_ns() // 1_000_000
    if args.compare:
        return _compare(settings, args, now_ms)
    width = RANGES.get(args.last)
    window = None if width is None else Window(now_ms - width, now_ms, is_live=True)
    found = asked(settings, lambda lake: deploys(lake, window, group=args.group, cluster=args.cluster or ""))
    if args.json:
        print_json(deploys_values(found, MOST_ROWS, now_ms=now_ms, stale_ms=settings.stale_ms))
    else:
        sys.stdout.write(deploys_text(found, now_ms=now_ms, stale_ms=settings.stale_ms))
    return 0 if found.rows else NOTHING


def _compare(settings: Settings, args: argparse.Namespace, now_ms: int) -> int:
    if args.group is None:
        raise UserError("--compare needs a group: regroup deploys GROUP --compare.")
    found = asked(settings, lambda lake: compared_deploys(lake, args.group, cluster=args.cluster or ""))
    if args.json:
        print_json(compared_values(found))
    else:
        sys.stdout.write(compared_text(found, now_ms=now_ms, stale_ms=settings.stale_ms))
    return 0 if found.before is not None else NOTHING
