"""The cost of cheap hostile input: rows, bytes and seconds per MB of records, lines, polls and marks, within budgets.

`./regroup bench hostile [--scale 1]`. Each attack is measured with n and 4n of its input, through the functions that
make bronze, silver and gold, in this process. The exit code is 1 if a budget is exceeded: rows and bytes per byte of
input, seconds per MB, or a time for 4 times the input of more than `GROWTH` times that of the input.
"""

from __future__ import annotations

import argparse
import sys

from testing.hostile.attacks import ATTACKS
from testing.hostile.cost import measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="factor for the size of the input")
    parser.add_argument("--only", help="run only the attack with this name")
    asked = parser.parse_args()
    print(f"{'attack':28} {'of':8} {'input':>8} {'rows/kB':>8} {'bytes/byte':>10} {'s/MB':>7} {'4n/n':>6}  exceeded")
    is_good = True
    for attack in ATTACKS:
        if asked.only in (None, attack.name):
            cost = measured(attack, asked.scale)
            over = cost.exceeded()
            is_good &= not over
            print(
                f"{attack.name:28} {attack.kind:8} {cost.size / 1e6:6.2f}MB {cost.made.rows / cost.size * 1e3:8.1f} "
                f"{cost.made.size / cost.size:10.1f} {cost.seconds / cost.size * 1e6:7.1f} {cost.growth:6.1f}  "
                f"{', '.join(over) or 'nothing'}",
                flush=True,
            )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
