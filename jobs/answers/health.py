"""`regroup health`: whether the tables can be trusted now."""

from __future__ import annotations

import argparse
import sys
import time

from dashboards.answers.health import health, health_text, health_values
from jobs.config.settings import Settings
from jobs.lake import asked, print_json

UNSOUND = 1
"""Exit code if nothing was read, or if there is a problem with the tables."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the answer as text or JSON. Return 0, or `UNSOUND`.

    Raises:
        UserError: the tables cannot be read.
    """
    now_ms = time.time_ns() // 1_000_000
    found = asked(settings, lambda lake: health(lake, now_ms=now_ms, stale_ms=settings.stale_ms))
    if args.json:
        print_json(health_values(found))
    else:
        sys.stdout.write(health_text(found, now_ms=now_ms))
    return 0 if found.is_sound else UNSOUND
