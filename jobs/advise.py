"""`regroup advise GROUP`: what a group should change, what that saves, and the text to paste."""

from __future__ import annotations

import argparse
import json
import sys

from dashboards.answers.advise import advise, advise_text, advise_values, recommended
from jobs.config.settings import Settings
from jobs.lake import asked

NOTHING = 1
"""Exit code if no change is recommended."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the advice as text or JSON. Return 0, or `NOTHING` if no change is recommended.

    Raises:
        UserError: there is no such group, it is not analyzed yet, or the tables cannot be read.
    """
    found = asked(settings, lambda lake: advise(lake, args.group, cluster=args.cluster or ""))
    if args.json:
        json.dump(advise_values(found), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        sys.stdout.write(advise_text(found))
    return 0 if recommended(found) else NOTHING
