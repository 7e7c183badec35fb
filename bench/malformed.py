"""Request bodies that no page sends: none may crash or hang the pages, or get more than a sentence in response.

`python -m bench.malformed [--bodies 100000]`. Bodies of the pages are mutated at random and posted to the application
in this process. Prints the responses by status, and the slowest one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from testing.fuzzing.callbacks import post


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=100_000)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        responses, logged = post(Path(folder), count=parser.parse_args().bodies)
    for status, count in sorted(responses.statuses.items()):
        print(f"{count:8,} answered {status}")
    print(f"slowest {responses.slowest_s:.2f} s, all {time.perf_counter() - began:.0f} s, {len(logged)} lines logged")
    print(f"responses with more than a sentence: {len(responses.leaks)}")
    for text in (*responses.leaks[:5], *logged[:5]):
        print(text[-1500:])


if __name__ == "__main__":
    main()
