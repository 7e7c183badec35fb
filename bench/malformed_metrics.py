"""Requests to the metrics port that Prometheus never sends: random hosts, paths, queries and methods.

`python -m bench.malformed_metrics [--requests 200000]`. Each goes to the port's application in this process, as the
server passes it. Each must get status 200, 403, 404 or 405, and group names only for host names of this machine.
"""

from __future__ import annotations

import argparse
import time

from testing.fuzzing.metrics import send


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    began = time.perf_counter()
    found = send(asked.requests, asked.seed)
    for status, number in sorted(found.statuses.items()):
        print(f"{number:8,} answered {status}")
    print(f"seed {asked.seed}: {len(found.wrong)} wrong, slowest {found.slowest_s:.3f} s", end="")
    print(f", all {time.perf_counter() - began:.0f} s")
    print(*found.wrong[:5], sep="\n")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
