"""Bytes in bronze per million commits, before and after `maintain`.

Records of `bench.load` go through the fold that the live source runs, in batches as a stream of 5 s triggers reads them
(a file a batch and table), and are then maintained once. Nothing but the disk is used: no broker, no Kafka.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from pathlib import Path

import deltalake
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.load import Load, records
from jobs.delta_io import append, create_tables, table_path
from jobs.maintain import Maintenance
from jobs.settings import Settings
from jobs.spark import session
from pipelines.arrow_types import row_type
from pipelines.bronze_batch import SourceRecord, bronze_rows
from schemas.bronze import BRONZE, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS
from schemas.tables import Table

TABLES = (COORDINATOR_RECORDS, OFFSET_COMMITS, COVERAGE)
TARGET_MB = 6.0
AT_ONCE = 25
"""Batches written by one commit, each into a file of its own: what a commit costs is not measured here."""
HOUR_MS = 3_600_000


def batches(load: Load, start_ms: int, size: int) -> Iterator[list[SourceRecord]]:
    """`size` records each, ascending in offset within each partition."""
    ends: dict[int, int] = defaultdict(int)

    def placed() -> Iterator[SourceRecord]:
        for partition, at_ms, key, value in records(load, start_ms, range(load.groups)):
            yield SourceRecord(partition, ends[partition], at_ms, key, value)
            ends[partition] += 1

    stream = placed()
    while batch := list(islice(stream, size)):
        yield sorted(batch, key=lambda record: (record.partition, record.offset))


def fill(spark: SparkSession, warehouse: Path, load: Load, start_ms: int, trigger_seconds: float) -> int:
    """Write bronze; returns how many commits there were."""
    create_tables(spark, warehouse, BRONZE)
    commits, number = 0, 0
    stream = batches(load, start_ms, round(load.records_per_s * trigger_seconds))
    while some := list(islice(stream, AT_ONCE)):
        number += 1
        folded = [bronze_rows(batch, cluster="kafka", log_epoch=0) for batch in some]
        commits += sum(row["commits"] for rows in folded for row in rows[OFFSET_COMMITS.name])
        for table in TABLES:
            frames = [_file(spark, rows[table.name], table) for rows in folded if rows[table.name]]
            append(reduce(DataFrame.union, frames), table_path(warehouse, table), app_id="bench", version=number)
    return commits


def _file(spark: SparkSession, rows: Sequence[dict[str, object]], table: Table) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(list(rows), pa.schema(list(row_type(table))))).coalesce(1)


def stored(warehouse: Path, table: Table) -> tuple[int, int, int]:
    """Bytes, files and rows of a table as it stands."""
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
        Maintenance(spark=spark, settings=Settings(warehouse=warehouse), say=print).round()
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
