"""A group that never rests: rows of history read, seconds and memory of each batch, with groups that only commit.

`./regroup bench loop [--rate 200] [--minutes 10] [--batch-seconds 5] [--calm 1000] [--loops 1 | --eager] [--storm 0]`.
Connect workers go on with a recorded CONFIG_MISMATCH loop, while the tasks of a worker that left wait, so that the
group is never at rest. With `--eager`, the loop is that of an eager consumer group, in which each generation stops all
partitions, so nothing is folded. With `--storm`, that many groups commit and rebalance in turn as well, as under the
load of `bench steady`; with `--loops 0 --calm 0` only they do. The real functions build bronze and silver of a new
warehouse in this process, and the last lines say what silver stores. No Kafka, no Spark.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from bench.load import LOOP, LOOP_GROUP, Load, records
from jobs.captures.recording import Capture
from jobs.config.settings import Settings
from jobs.replay import CaptureRecords, replay
from jobs.retention.folder_files import files_and_bytes
from jobs.silver.inputs import SilverInputs
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.decoding.source_record import SourceRecord
from schemas.bronze import BRONZE
from schemas.gold import MARKS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, REASSIGNMENT_TABLES, SILVER, STALLS
from testing.recordings import CAPTURES
from testing.records.binary import offset_commit, offset_commit_key
from testing.records.endless import going_on

EAGER = "eager_churn"
CALM_TOPIC, CALM_PARTITION = "settlement-events", 7
STORM_PARTITION = 10_000
"""The first partition of a storm, which no loop has."""

PRINTED_EVERY = 12
"""Batches for each line of the output, a minute of batches of five seconds."""


def renamed(record: SourceRecord, nth: int) -> SourceRecord:
    """Return the record as one of the group with another number; names are equally long."""
    if not nth:
        return record
    name = LOOP_GROUP.encode()
    assert record.key is not None
    key, new = record.key, f"branch-loop{nth:03d}".encode()
    return record._replace(key=key.replace(name, new), partition=record.partition + 8 * nth)


def until_the_largest(capture: Capture) -> list[SourceRecord]:
    """Return the records of a recording until its generation with the largest record."""
    recorded = list(capture.records())
    last = max(recorded, key=lambda record: len(record.value or b""))
    return [*(record for record in recorded if record.timestamp_ms < last.timestamp_ms), last]


def commits(groups: int, at_ms: int, offset: int) -> Iterator[SourceRecord]:
    """Yield one commit of each calm group, all in one partition."""
    for number in range(groups):
        key = offset_commit_key(f"calm-{number:05d}", CALM_TOPIC, 0)
        value = offset_commit(at_ms // 1000, at_ms)
        yield SourceRecord(CALM_PARTITION, offset + number, at_ms, key, value)


def storm(groups: int, start_ms: int, minutes: int, batch_ms: int) -> Iterator[list[SourceRecord]]:
    """Yield the records of each batch of a storm without an end, in partitions of their own."""
    offsets: Counter[int] = Counter()

    def made() -> Iterator[SourceRecord]:
        load = Load(records=minutes * 60 * 2 * groups, groups=groups, records_per_s=2 * groups)
        for home, at_ms, key, value in records(load, start_ms, range(groups)):
            partition = STORM_PARTITION + home
            yield SourceRecord(partition, offsets[partition], at_ms, key, value)
            offsets[partition] += 1

    for _, batch in groupby(made(), lambda record: (record.timestamp_ms - start_ms) // batch_ms):
        yield list(batch)


def resident_mb() -> float:
    """Return the memory of this process that is resident now."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def counting() -> list[int]:
    """Count the rows of history that each batch reads from now on."""
    found: list[int] = []
    history = SilverInputs.history

    def counted(self: SilverInputs, points: pa.Table) -> dict[str, pa.Table] | None:
        read = history(self, points)
        found.append(-1 if read is None else sum(rows.num_rows for rows in read.values()))
        return read

    SilverInputs.history = counted  # type: ignore[method-assign]
    return found


class Minute(NamedTuple):
    """Batches since the last printed line: how many there were until now, the rows of history that each one read, and
    the columns of `TOOK`.
    """

    batches: int
    read: Sequence[int]
    took: str


TOOK = f"{'median s':>9} {'longest s':>9} {'cpu s':>6} {'MB':>7}"
"""Median and longest batch in seconds, seconds of processor time of a batch, memory."""


def measured_minutes(
    settings: Settings, meta: Mapping[str, Any], batches: Iterable[list[SourceRecord]]
) -> Iterator[Minute]:
    """Replay the batches, and yield what was measured after each `PRINTED_EVERY` of them."""
    read, took, used = counting(), [], time.process_time()
    for number, batch in enumerate(batches, 1):
        began = time.monotonic()
        replay(None, settings, "bench", dict(meta), CaptureRecords(records=batch))
        took.append(time.monotonic() - began)
        if number % PRINTED_EVERY == 0:
            ordered, cpu, used = sorted(took), (time.process_time() - used) / len(took), time.process_time()
            seconds = f"{ordered[len(ordered) // 2]:9.2f} {ordered[-1]:9.2f} {cpu:6.2f}"
            yield Minute(number, [*read], f"{seconds} {resident_mb():7,.0f}")
            took.clear()
            read.clear()


def measured(warehouse: Path, given: argparse.Namespace) -> None:
    """Print a line for each minute: generations of the loops until then, rows of history that its last batch read, its
    median and longest batch, the seconds of processor time of a batch, memory.
    """
    settings, capture = Settings(warehouse=warehouse), Capture(CAPTURES / (EAGER if given.eager else LOOP))
    create_tables(None, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    recorded = until_the_largest(capture) if given.eager else list(capture.records())
    begun = [renamed(record, nth) for nth in range(given.loops) for record in recorded]
    replay(None, settings, "bench", capture.meta, CaptureRecords(records=begun))
    each, batches = given.rate * given.batch_seconds, given.minutes * 60 // given.batch_seconds
    batch_ms = 1000 * given.batch_seconds
    storms = storm(given.storm, recorded[-1].timestamp_ms, given.minutes, batch_ms) if given.storm else repeat([])
    loops = [going_on(renamed(recorded[-1], n), each * batches, 1000 // given.rate) for n in range(given.loops)]
    made = (
        [
            *(record for loop in loops for record in islice(loop, each)),
            *commits(given.calm, recorded[-1].timestamp_ms + number * batch_ms, number * given.calm),
            *stormy,
        ]
        for number, stormy in zip(range(1, batches + 1), storms, strict=False)
    )
    print(f"{'minute':>6} {'generations':>12} {'rows read':>10} {TOOK}")
    for minute in measured_minutes(settings, capture.meta, made):
        number, generations = minute.batches * given.batch_seconds / 60, minute.batches * each * given.loops
        print(f"{number:6.0f} {generations:12,} {minute.read[-1]:10,} {minute.took}", flush=True)
    for table in (GENERATIONS, GENERATION_MEMBERS, STALLS):
        _, stored = files_and_bytes(warehouse, table)
        rows = DeltaTable(table_path(warehouse, table)).to_pyarrow_dataset().count_rows()
        print(f"{table.name}: {rows:,} rows, {stored / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=200, help="generations a second of each loop")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--batch-seconds", type=int, default=5)
    parser.add_argument("--calm", type=int, default=1_000, help="groups that only commit")
    loops = parser.add_mutually_exclusive_group()
    loops.add_argument("--loops", type=int, default=1)
    loops.add_argument("--eager", action="store_true", help="the loop of an eager consumer group")
    parser.add_argument("--storm", type=int, default=0, help="groups that commit and rebalance in turn")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="regroup-loop-") as folder:
        measured(Path(folder), given)


if __name__ == "__main__":
    main()
