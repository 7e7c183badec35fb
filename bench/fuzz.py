"""Random records and log lines: checks that each is decoded, ignored or quarantined, quickly and with little memory.

Real records of every kind are mutated (`testing.fuzzing`) and go through the functions that make bronze from Kafka's
messages. Some of the records are also read by Kafka's own coordinator, for comparison.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import islice
from random import Random

from bench.fuzzing.report import report, table
from testing.fuzzing.messages import AT_ONCE, compared_with_kafka, fuzz_lines, fuzz_records
from testing.fuzzing.mutations import mutated_records


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="number of records, and of messages")
    parser.add_argument(
        "--compare", type=int, default=50_000, help="number of records to compare with Kafka's own decoder"
    )
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    is_good = True
    for name, fuzz in (("records", fuzz_records), ("log lines", fuzz_lines)):
        found = fuzz(asked.records, Random(asked.seed))
        is_good &= found.is_good
        report(name, found, together=AT_ONCE)
    verdicts, differences = compared_with_kafka(list(islice(mutated_records(Random(asked.seed + 1)), asked.compare)))
    table(f"{asked.compare:,} records compared with Kafka's decoder", verdicts)
    print(*differences[:20], sep="\n")
    return 0 if is_good and not differences else 1


if __name__ == "__main__":
    sys.exit(main())
