"""`regroup advise GROUP`: what a group should change, what that saves, and the text to paste."""

from __future__ import annotations

import argparse
import sys

from dashboards.answers.advise import advise, advise_text, advise_values
from dashboards.answers.group_advice import recommended
from jobs.config.settings import Settings
from jobs.lake import asked, print_json

NOTHING = 1
"""Exit code if no change is recommended."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Print the advice as text or JSON. Return 0, or `NOTHING` if no change is recommended.

    Raises:
        UserError: there is no such group, it is not analyzed yet, or the tables cannot be read.
    """
    found = asked(settings, lambda lake: advise(lake, args.group, cluster=args.cluster or ""))
    if args.json:
        print_json(advise_values(found))
    else:
        sys.stdout.write(advise_text(found))
    return 0 if recommended(found.rows) else NOTHING
