"""One group of thousands of members: the size of its records, and the time to decode them and make silver.

`./regroup bench large-group [--members 10000] [--partitions 50000] [--generations 5]`. Every generation has other
members and a new distribution of the partitions, and every partition commits once in each generation: the largest
possible change. The functions that make bronze and silver run in this process, on one core. No Kafka, no Spark.
"""

from __future__ import annotations

import argparse
import resource
import struct
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from jobs.config.settings import Settings
from jobs.silver.silver_tasks import Making
from pipelines.bronze_batch import Records, bronze
from pipelines.decoding.source_record import SourceRecord
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.frame import INPUTS
from testing.records.binary import group_metadata, offset_commit_key

GROUP, TOPIC = "payments-settlement", "settlement-events"
BEGIN_MS, APART_MS = 1_790_000_000_000, 60_000
Found = TypeVar("Found")


def history(members: int, partitions: int, generations: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield (time in ms, key, value)."""
    group_key = struct.pack(">hh", 2, len(GROUP)) + GROUP.encode()
    commit_keys = [offset_commit_key(GROUP, TOPIC, partition) for partition in range(partitions)]
    for generation in range(1, generations + 1):
        at = BEGIN_MS + generation * APART_MS
        yield at, group_key, group_metadata(GROUP, generation, at, count=members, partitions=partitions)
        for key in commit_keys:
            yield at + 5_000, key, struct.pack(">hqibqb", 4, generation, 7, 1, at + 5_000, 0)


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
    given = parser.parse_args()
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
