"""Bytes in bronze per million commits, before and after `maintain`.

Records of `bench.load` go through the fold of the live source, in batches like those of a stream with a 5 s trigger,
and are then maintained once. Only the disk is used: no broker, no Kafka.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from bench.load import Load, records
from jobs.config.settings import Settings
from jobs.maintain import Maintenance
from jobs.processes.worker_process import WorkerProcess
from jobs.retention.compact import merged_file
from jobs.spark.spark import session
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.arrow_types import row_type
from pipelines.bronze_batch import Records, bronze, count
from pipelines.coverage import Span
from pipelines.decoding.source_record import SourceRecord
from schemas.bronze import BRONZE, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS
from schemas.records import OFFSETS_TOPIC
from schemas.tables import Table
from testing.warehouses.new_files import in_files

TABLES = (COORDINATOR_RECORDS, OFFSET_COMMITS, COVERAGE)
TARGET_MB = 6.0
AT_ONCE = 25
"""Batches per commit. Its files are fewer and larger than those of a stream, which take more bytes."""
HOUR_MS = 3_600_000


def batches(load: Load, start_ms: int, size: int) -> Iterator[list[SourceRecord]]:
    """Yield batches of `size` records each, in ascending order of offsets within each partition."""
    ends: dict[int, int] = defaultdict(int)

    def placed() -> Iterator[SourceRecord]:
        for partition, at_ms, key, value in records(load, start_ms, range(load.groups)):
            yield SourceRecord(partition, ends[partition], at_ms, key, value)
            ends[partition] += 1

    stream = placed()
    while batch := list(islice(stream, size)):
        yield sorted(batch, key=lambda record: (record.partition, record.offset))


def fill(spark: SparkSession, warehouse: Path, load: Load, start_ms: int, trigger_seconds: float) -> int:
    """Write bronze; return the number of commits."""
    create_tables(spark, warehouse, BRONZE)
    commits, number = 0, 0
    stream = batches(load, start_ms, round(load.records_per_s * trigger_seconds))
    while some := list(islice(stream, AT_ONCE)):
        number += 1
        folded = [fold(batch) for batch in some]
        commits += sum(pc.sum(rows[OFFSET_COMMITS.name]["commits"]).as_py() for rows in folded)
        for table in TABLES:
            append(spark, warehouse, in_files(warehouse, table, [rows[table.name] for rows in folded]))
    return commits


def fold(batch: Sequence[SourceRecord]) -> dict[str, pa.Table]:
    """Return the rows that the live source makes from a batch, by table name."""
    read = Records.of(batch, log_epoch=0)
    firsts: dict[int, int] = {}
    lasts: dict[int, int] = {}
    for place, at, *_ in batch:
        firsts.setdefault(place, at)
        lasts[place] = at
    spans = {
        place: Span(partition=place, log_epoch=0, from_offset=at, to_offset=lasts[place] + 1)
        for place, at in firsts.items()
    }
    count(spans, read, ())
    covered = pa.array([span.row("kafka", OFFSETS_TOPIC) for span in spans.values()], row_type(COVERAGE))
    rows = bronze(read, cluster="kafka") | {COVERAGE.name: covered}
    return {name: pa.Table.from_struct_array(array) for name, array in rows.items()}


def stored(warehouse: Path, table: Table) -> tuple[int, int, int]:
    """Return bytes, files and rows of a table in its current version."""
    files = deltalake.DeltaTable(table_path(warehouse, table)).get_add_actions(flatten=True)
    sizes, rows = files["size_bytes"].to_pylist(), files["num_records"].to_pylist()
    return sum(sizes), len(sizes), sum(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--trigger-seconds", type=float, default=5.0)
    asked = parser.parse_args()
    load = Load(records=asked.records, groups=asked.groups)
    ends_ms = int(time.time() * 1000) // HOUR_MS * HOUR_MS - HOUR_MS
    with tempfile.TemporaryDirectory() as folder:
        warehouse, spark = Path(folder), session("regroup bench storage")
        start_ms = ends_ms - load.records * 1000 // load.records_per_s
        commits = fill(spark, warehouse, load, start_ms, asked.trigger_seconds)
        before = {table: stored(warehouse, table) for table in TABLES}
        began = time.monotonic()
        with WorkerProcess(merged_file) as worker:
            Maintenance(spark=spark, settings=Settings(warehouse=warehouse), say=print, worker=worker).round()
        took = time.monotonic() - began
        after = {table: stored(warehouse, table) for table in TABLES}
        spark.stop()
    print(f"{commits:,} commits of {load.groups:,} groups, a batch every {asked.trigger_seconds} s")
    print(f"maintained in {took:.0f} s")
    print(f"{'MB, files and rows per million commits':40} {'before':>28} {'after':>28}")
    for table in TABLES:
        print(f"{table.name:40} {_per_million(before[table], commits):>28} {_per_million(after[table], commits):>28}")
    total = [sum(side[table][0] for table in TABLES) / commits for side in (before, after)]
    print(f"{'bronze':40} {total[0]:>25.2f} MB {total[1]:>25.2f} MB   target {TARGET_MB} MB")


def _per_million(found: tuple[int, int, int], commits: int) -> str:
    size, files, rows = (each * 1e6 / commits for each in found)
    return f"{size / 1e6:.2f} MB {files:,.0f} {rows:,.0f}"


if __name__ == "__main__":
    main()
