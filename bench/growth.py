"""Growth: the time per record of a catch-up at three topic sizes, and the time per batch at three cluster sizes.

`./regroup bench growth [--records 1000000 10000000 30000000] [--groups 100 1000 10000] [--batches 60]`. Each size has
its own broker and warehouse. Every catch-up includes the same start, so "each further" is the time of a record beyond
the next smaller topic. A batch has 10,000 records, the records of five seconds at 2,000 records/s, and begins when the
batch before is in silver. The batches of the second half are measured.

With `--fleet 100000`, only one fleet of so many groups is measured: `build`, `analyze` and the search for storms, with
tables in a folder and with tables below an address, which Spark reads and writes (`bench.elsewhere`). No Kafka.
With `--executors 1 2`, only `ingest` and the commands `--after-ingest` (the first `build`, and `rebuild`) on a
standalone cluster of so many executors are measured, with the first of `--records`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
from collections.abc import Mapping

from bench.catch_up import PER_BATCH, batches, loaded, seconds
from bench.elsewhere import executors
from bench.elsewhere.fleet_bronze import STARTS
from bench.elsewhere.whole_fleet import PLACES, measure
from bench.load import Load

RECORDS = (1_000_000, 10_000_000, 30_000_000)
GROUPS = (100, 1_000, 10_000)
MEASUREMENTS = ("bare", "bronze", "silver")


def catching_up(sizes: list[int]) -> None:
    """Print a line for each size and measurement."""
    print(f"{'records':>12}  {'':8} {'seconds':>8} {'us a record':>12} {'each further':>13} {'of the bare read':>17}")
    before: Mapping[str, float] = {}
    smaller = 0
    for size in sizes:
        took: dict[str, float] = {}
        with loaded(Load(records=size)) as (servers, _):
            for name in MEASUREMENTS:
                took[name] = seconds(name, servers)
                further = f"{(took[name] - before[name]) / (size - smaller) * 1e6:.2f}" if before else ""
                share = f"{took['bare'] / took[name]:.2f}"
                each = took[name] / size * 1e6
                print(f"{size:12,}  {name:8} {took[name]:8.1f} {each:12.2f} {further:>13} {share:>17}", flush=True)
        before, smaller = took, size


def by_groups(sizes: list[int], count: int) -> None:
    """Print a line for each number of groups."""
    print(f"\n{'groups':>12} {'batches':>8} {'median s':>9} {'p95 s':>7} {'of the first':>13}")
    first = 0.0
    for groups in sizes:
        # A separate process, so that each size has a JVM that has just started.
        pool = multiprocessing.get_context("spawn").Pool(1)
        with loaded(Load(records=count * PER_BATCH, groups=groups)) as (servers, folder), pool:
            took = pool.apply(batches, (servers, folder))
        half = sorted(took[len(took) // 2 :])
        middle, p95 = statistics.median(half), half[int(0.95 * len(half))]
        first = first or middle
        print(f"{groups:12,} {len(half):8} {middle:9.2f} {p95:7.2f} {middle / first:13.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="*", default=[*RECORDS])
    parser.add_argument("--groups", type=int, nargs="*", default=[*GROUPS])
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--fleet", type=int, help="measure only one fleet of this many groups")
    parser.add_argument("--churning", type=int, default=20, help="further groups of the fleet, each with a storm")
    parser.add_argument("--starts", type=int, default=STARTS, help="starts of each other group, four hours apart")
    parser.add_argument("--memory", default="2g", help="heap of Spark's driver for the fleet")
    parser.add_argument("--places", nargs="*", default=[*PLACES], choices=PLACES, help="where the fleet's tables are")
    parser.add_argument("--executors", type=int, nargs="*", help="measure only clusters of so many executors")
    known, what = executors.AFTER_INGEST, "commands that the executors run after ingest"
    parser.add_argument("--after-ingest", nargs="*", default=[*known], choices=known, help=what)
    parser.add_argument(
        "--rounds-per-generation", type=int, default=20, help="rounds of commits in each generation, for the executors"
    )
    limit = "most of the machine's processor time that each executor has, in cores (Linux, as root)"
    parser.add_argument("--executor-cores", type=float, metavar="CORES", help=limit)
    arguments = parser.parse_args()
    if arguments.executors:
        load = Load(records=arguments.records[0], rounds_per_generation=arguments.rounds_per_generation)
        executors.measure(load, sorted(arguments.executors), arguments.after_ingest, arguments.executor_cores)
        return
    if arguments.fleet:
        measure(arguments.fleet, arguments.churning, arguments.memory, arguments.places, arguments.starts)
        return
    if arguments.records:
        catching_up(sorted(arguments.records))
    if arguments.groups:
        by_groups(sorted(arguments.groups), arguments.batches)


if __name__ == "__main__":
    main()
