"""Settings files, environments and flags with bad or hostile values: each is accepted or rejected with a sentence."""

from __future__ import annotations

import argparse
import sys
import time
from random import Random

from bench.fuzzing.report import report
from testing.fuzzing.settings import fuzz_settings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000, help="number of settings")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    found = fuzz_settings(asked.count, Random(asked.seed))
    report("settings", found)
    return 0 if found.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
