"""One group of thousands of members: the size of its records, and the time to decode them and make silver.

`./regroup bench large-group [--members 10000] [--partitions 50000] [--generations 5] [--restless MINUTES]`. Every
generation has other members and a new distribution of the partitions, and every partition commits once in each
generation: the largest possible change. With `--restless`, the group keeps its members instead, one partition each, and
rebalances every nine seconds, so that it never rests; batches of five seconds build bronze and silver of a new
warehouse, beside 1,000 groups that only commit. The real functions run in this process. No Kafka, no Spark.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from bench.loop import TOOK, commits, measured_minutes
from jobs.config.settings import Settings
from jobs.silver.silver_tasks import Making
from jobs.tables.create_tables import create_tables
from pipelines.bronze_batch import Records, bronze
from pipelines.decoding.source_record import SourceRecord
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.frame import INPUTS
from schemas.bronze import BRONZE
from schemas.gold import MARKS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from testing.records.binary import group_key, group_metadata, offset_commit, offset_commit_key

GROUP, TOPIC = "payments-settlement", "settlement-events"
BEGIN_MS, APART_MS = 1_790_000_000_000, 60_000
RESTLESS_MS, BATCH_MS = 9_000, 5_000
"""Milliseconds from one generation of a group that does not rest, and from one batch, to the next."""

CALM = 1_000
Found = TypeVar("Found")


def history(members: int, partitions: int, generations: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield (time in ms, key, value)."""
    commit_keys = [offset_commit_key(GROUP, TOPIC, partition) for partition in range(partitions)]
    for generation in range(1, generations + 1):
        at = BEGIN_MS + generation * APART_MS
        yield at, group_key(GROUP), group_metadata(GROUP, generation, at, count=members, partitions=partitions)
        for key in commit_keys:
            yield at + 5_000, key, offset_commit(generation, at + 5_000)


def restless(members: int, minutes: int) -> Iterator[list[SourceRecord]]:
    """Yield the records of each batch."""
    keys = [offset_commit_key(GROUP, TOPIC, partition) for partition in range(members)]
    offset, generation = 0, 0
    for batch in range(1, minutes * 60_000 // BATCH_MS + 1):
        until, rows = BEGIN_MS + batch * BATCH_MS, []
        while (at := BEGIN_MS + generation * RESTLESS_MS) < until:
            generation += 1
            value = group_metadata(GROUP, generation, at, count=members, partitions=members, joined_in=1)
            rows.append((at + 5, group_key(GROUP), value))
        committed = until - BATCH_MS // 2
        value = offset_commit(batch, committed)
        rows += [(committed, key, value) for key in keys]
        of_group = [SourceRecord(0, offset + nth, *row) for nth, row in enumerate(sorted(rows))]
        offset += len(of_group)
        yield [*of_group, *commits(CALM, until, batch * CALM)]


def rebuilt(warehouse: Path, members: int, minutes: int) -> None:
    """Print a line for each minute: rows of history that a batch read at most, and the columns of `bench.loop.TOOK`."""
    settings = Settings(warehouse=warehouse)
    create_tables(None, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    print(f"{'minute':>6} {'rows read':>10} {TOOK}")
    for number, minute in enumerate(measured_minutes(settings, {}, restless(members, minutes)), 1):
        print(f"{number:6} {max(minute.read):10,} {minute.took}", flush=True)


def measured(what: str, work: Callable[[], Found]) -> Found:
    """Run `work`, and print its seconds and the highest memory use of this process so far."""
    began = time.monotonic()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:52} {time.monotonic() - began:8.1f} s   {peak:8,.0f} MB at most so far", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=50_000)
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--restless", type=int, metavar="MINUTES", help="measure only a group that never rests")
    given = parser.parse_args()
    if given.restless:
        with tempfile.TemporaryDirectory(prefix="regroup-large-group-") as folder:
            rebuilt(Path(folder), given.members, given.restless)
        return
    rows = measured("writing", lambda: list(history(given.members, given.partitions, given.generations)))
    print(f"{len(rows):,} records; the largest has {max(len(value) for *_, value in rows) / 1e6:.1f} MB")
    records = Records.of((SourceRecord(0, at, *row) for at, row in enumerate(rows)), log_epoch=0)
    made = measured("bronze", lambda: bronze(records, cluster="bench"))
    nothing, making = pa.table({}), Making(quiet_ms=Settings().quiet_ms, hosts=ClientHosts(), topic_names={})
    known = {
        name: pa.Table.from_struct_array(made[table.name]) if table.name in made else nothing
        for name, table in INPUTS.items()
    }
    silver = measured("silver", lambda: making.rows(known, nothing))
    for table, found in silver.items():
        print(f"  {table.name:20} {found.num_rows:10,} rows")


if __name__ == "__main__":
    main()
