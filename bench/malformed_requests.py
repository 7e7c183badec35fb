"""Requests that no page sends: paths, queries, headers and bodies mutated at random.

`python -m bench.malformed_requests [--requests 200000]`. Sends them to the application in this process. No response may
be a server error, a rejection must be one sentence, and nothing may be logged.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from testing.fuzzing.requests import send


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        responses, logged = send(Path(folder), count=args.requests, seed=args.seed)
    for status, count in sorted(responses.statuses.items()):
        print(f"{count:8,} answered {status}")
    print(f"slowest {responses.slowest_s:.2f} s, all {time.perf_counter() - began:.0f} s, {len(logged)} lines logged")
    for text in (*responses.leaks[:5], *logged[:5]):
        print(text[-1500:])


if __name__ == "__main__":
    main()
