"""Commits like those of `up`, batch after batch, without Kafka and Spark: for processes that only read tables.

`python -m testing.ageing.commits WAREHOUSE` writes until it is ended, and prints a line for each batch, as `up` does. A
batch rebalances one of `GROUP_COUNT` groups twice. The tables keep the rows of the last hour of batches, so they do not
grow after the first hour. Every `MERGED_EVERY` batches, one file replaces the files of each table.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from itertools import count
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.arrow_types import stored
from schemas.bronze import BRONZE, COVERAGE
from schemas.gold import GOLD, VERDICTS
from schemas.silver import GROUPS, SILVER
from schemas.tables import Table
from testing.ageing.short_logs import kept_for
from testing.sample import CLUSTER, History, Rows, verdicts

GROUP_COUNT = 50
KEPT = 720
"""Batches of an hour at the usual trigger."""

MERGED_EVERY = 40
RETENTION = "interval 6 minutes"
"""At four batches a second about as many as in the two hours for which `up` keeps logs."""

CHANGED = (*SILVER, VERDICTS, COVERAGE)
Written = dict[Table, pa.Table]


def rows_of(number: int, now: int) -> Rows:
    """Return the rows of a batch: a member of one group leaves, and another one joins."""
    group = History(f"group-{number % GROUP_COUNT:02d}")
    group.number = number // GROUP_COUNT * 2
    one, two = group.member("one"), group.member("two")
    group.rebalance(now - 4_000, [one], "member_left", wait=500)
    group.rebalance(now - 2_000, [one, two], "member_joined", by=two, wait=500)
    rows = group.end(now, first_seen=now - 4_000)
    for row in rows["generation_members"]:
        row["valid_to_at"] = row["valid_to_at"] or now
    span = {"from_offset": number, "to_offset": number + 1, "from_at": now - 4_000, "to_at": now, "records": 1}
    source = {"cluster": CLUSTER, "source": "__consumer_offsets", "source_partition": 7, "log_epoch": 0}
    rows[COVERAGE.name] = [source | span | {"is_gap": False, "skipped": 0, "quarantined": 0}]
    return rows | verdicts(rows)


def written(rows: Rows) -> Written:
    """Return the rows of the tables that a batch changes as Arrow tables."""
    found = {table: rows.get(table.name, []) for table in CHANGED}
    return {
        table: stored([dict.fromkeys(table.names) | row for row in of_table], table)
        for table, of_table in found.items()
        if of_table
    }


def go_on(warehouse: Path) -> None:
    """Write batch after batch."""
    create_tables(None, warehouse, (*BRONZE, *SILVER, *GOLD))
    # Each write brings its table up to date, so no batch reads a log from its start.
    opened = {table: DeltaTable(table_path(warehouse, table)) for table in CHANGED}
    for each in opened.values():
        each.alter.set_table_properties(kept_for(RETENTION))
    # `groups` has one row per group, and each batch replaces one of them.
    kept = {table: deque[pa.Table](maxlen=GROUP_COUNT if table is GROUPS else KEPT) for table in CHANGED}
    began = time.monotonic()
    for number in count():
        for table, rows in written(rows_of(number, round(time.time() * 1000))).items():
            is_merged = number % MERGED_EVERY == 0
            kept[table].append(rows)
            if is_merged or table is GROUPS:
                write_deltalake(opened[table], pa.concat_tables(kept[table]), mode="overwrite")
            else:
                write_deltalake(opened[table], rows, mode="append")
            if is_merged:
                opened[table].vacuum(dry_run=False, full=True)
        sys.stdout.write(f"{time.monotonic() - began:7.1f} s  Batch {number} is in silver\n")
        sys.stdout.flush()


if __name__ == "__main__":
    go_on(Path(sys.argv[1]))
