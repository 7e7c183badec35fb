"""`regroup why GROUP`: why a group rebalanced, who caused it, what it cost and what would have avoided it."""

from __future__ import annotations

import argparse
import re
import sys
import time
from datetime import UTC, datetime, timedelta

from dashboards.answers.incidents.of_rebalance import rebalance_path
from dashboards.answers.why import why
from dashboards.answers.why_text import is_answered, why_text, why_values
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.lake import asked, print_json
from pipelines.marks import moment

CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
UNKNOWN = 1
"""Exit code if nothing can be blamed for the rebalance."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the answer as text or JSON. Return 0, or `UNKNOWN` if the rebalance has no verdict that blames something.

    Raises:
        UserError: there is no such group or no rebalance of it, or the tables cannot be read.
    """
    now_ms = time.time_ns() // 1_000_000
    try:
        at = None if args.at is None else span_of(args.at, now_ms)
    except ValueError as error:
        raise UserError(f"--at {error}.") from None
    found = asked(settings, lambda lake: why(lake, args.group, cluster=args.cluster or "", at=at))
    state = {"now_ms": now_ms, "stale_ms": settings.stale_ms}
    url = f"{settings.base_url}{rebalance_path(found)}"
    if args.json:
        print_json(why_values(found, url, **state))
    else:
        sys.stdout.write(why_text(found, url, **state))
    return 0 if is_answered(found) else UNKNOWN


def span_of(at: str, now_ms: int) -> tuple[int, int]:
    """Return the first and last millisecond of a time that a person wrote.

    `12:03` is the last minute of that name (UTC), and `12:03:07` the last such second. Other times are those of
    `regroup mark`, and mean one second.

    Raises:
        ValueError: it is no time, or one in the future; the message describes the accepted forms.
    """
    clock = CLOCK.fullmatch(at.strip())
    if clock is None:
        first = round(moment(at).timestamp() * 1000)
        if first > now_ms:
            raise ValueError(f"{at!r} is in the future")
        return first, first + 999
    hour, minute, second = (int(part or 0) for part in clock.groups())
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    try:
        found = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    except ValueError:
        raise ValueError(f"{at!r} is not a time of day: write 12:03 or 12:03:07 (UTC)") from None
    found -= timedelta(days=found > now)
    first = round(found.timestamp() * 1000)
    return first, first + (999 if clock[3] else 59_999)
