"""Time to keep `storms` up to date: `python -m bench.storm_tables [--groups 10000]`.

Silver of one simulated day, in hourly files as after maintenance of `up`; then batches of ten seconds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from jobs.gold.storms import memory_path, scan
from jobs.tables.paths import table_path
from pipelines.arrow_types import stored
from schemas.gold import STORMS
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, GROUPS, STALLS
from schemas.tables import Table
from testing.simulation.simulated_days import DAY, HOUR, SECOND, START, Cluster

CLUSTER = "kafka"


def table_of(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """Return the rows as a table, with NULL for missing values."""
    return stored((dict.fromkeys(table.names) | row | {"cluster": CLUSTER} for row in rows), table)


class Warehouse:
    """Silver of a simulated cluster at a given time. deltalake writes the tables that Spark writes in the product."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.groups = folder, [group.group_id for group in cluster.groups]
        self.generations: list[tuple[int, dict[str, Any]]] = []
        self.events: list[tuple[int, dict[str, Any]]] = []
        self.members: list[tuple[int, dict[str, Any]]] = []
        for group in cluster.groups:
            group.with_members = True
            generations, events = group.rows()
            self.members += [(m["valid_from_at"], m) for m in group.members]
            known = {g["generation_id"]: g["joined_at"] for g in generations}
            self.generations += [(g["joined_at"], g) for g in generations]
            self.events += [(max(e["event_at"], known.get(e["generation_id"], 0)), e) for e in events]
        write_deltalake(table_path(folder, STALLS), table_of(STALLS, []))
        write_deltalake(table_path(folder, STORMS), stored([], STORMS))

    def write(self, since: int, until: int) -> int:
        """Append the rows that became known between the two times; return their number."""
        count = 0
        tables = {GENERATIONS: self.generations, GROUP_EVENTS: self.events, GENERATION_MEMBERS: self.members}
        for table, rows in tables.items():
            mine = [row for at, row in rows if since <= at < until]
            write_deltalake(table_path(self.folder, table), table_of(table, mine), mode="append")
            count += len(mine) if table is not GENERATION_MEMBERS else 0
        known = [{"group_id": g, "first_seen_at": START - HOUR, "last_record_at": until} for g in self.groups]
        write_deltalake(table_path(self.folder, GROUPS), table_of(GROUPS, known), mode="overwrite")
        return count

    def update(self) -> int:
        """Do the work of `update_storms` without Spark's part; return the number of rows of storms."""
        found = scan(self.folder)
        write_deltalake(table_path(self.folder, STORMS), stored(found.new, STORMS), mode="overwrite")
        if found.memory is not None:
            found.memory.save(memory_path(self.folder))
        return len(found.new)


def _timed(name: str, work: Callable[[], int]) -> None:
    wall, processor = time.perf_counter(), time.process_time()
    count = work()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{name:45} {wall:7.2f} s, processor {processor:6.2f} s, {count:,} storms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    groups = parser.parse_args().groups
    cluster = Cluster(1, groups=groups, days=1)
    cluster.calm()
    with tempfile.TemporaryDirectory() as folder:
        warehouse = Warehouse(Path(folder), cluster)
        at, rows = START - HOUR, 0
        while at < START + DAY // 2:
            rows += warehouse.write(at, at + HOUR)
            at += HOUR
        print(f"{groups:,} groups, {rows:,} rows of generations and events")
        _timed("everything for the first time", warehouse.update)
        _timed("nothing new", warehouse.update)
        for _ in range(3):
            new = warehouse.write(at, at + 10 * SECOND)
            at += 10 * SECOND
            _timed(f"a batch of ten seconds, {new:,} rows", warehouse.update)


if __name__ == "__main__":
    main()
