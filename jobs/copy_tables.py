"""`regroup copy`: copy the tables of a warehouse into another place, such as a schema of Unity Catalog."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.maintain import TABLES, existing_tables
from jobs.processes.process_lock import acquire
from jobs.spark.spark import session_of
from jobs.states.stored_states import copied
from jobs.tables.append import append_frame
from jobs.tables.changed_rows import snapshot
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import read
from jobs.tables.disk.durability import write_whole
from jobs.tables.location import shown
from jobs.tables.table_facts import has_rows, table_id
from schemas.tables import Table
from schemas.written import count

STATES = ("_clusters", "_kept")
"""Folders with states that belong to the rows: which Kafka cluster a name stands for, and which rows were deleted."""

Content = tuple[int, int]
"""The number of rows, and the sum of their hashes."""


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Copy every table, and compare number and hash of the rows. A copy that was ended continues.

    Checkpoints are not copied: `ingest` continues where `coverage` ends, and `build` reads bronze again.

    Raises:
        UserError: the source has no tables or is the target, or a table of the target has other rows.
    """
    with copied(args.source) as source:
        _copy(settings, source)
    return 0


def _copy(settings: Settings, source: Path) -> None:
    target = settings.warehouse
    spark = session_of(settings, "copy", others=(source,))
    tables = existing_tables(source, TABLES)
    if not tables:
        raise UserError(f"The warehouse {source} has no tables to copy: name another with --from.")
    if shown(source) == shown(target):
        raise UserError(f"--from and --warehouse have the same tables, {shown(source)}: name two places.")
    with acquire(target, "copy"):
        for name in STATES:
            if (source / name).is_dir():
                shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        for table in tables:
            say(f"{table.name}: {_copied(spark, source, target, table)}")


def _copied(spark: SparkSession, source: Path, target: Path, table: Table) -> str:
    """Copy one table unless that was done, and return what was done."""
    note = target / "_checkpoints" / "copy" / f"{table.name}.json"
    version = snapshot(source, table).version
    done = {"table_id": table_id(source, table), "version": version}
    if note.exists() and json.loads(note.read_text(encoding="utf-8")) == done:
        return "was copied before"
    # Constrained afterwards, because a row of an earlier version may break the constraint, and is copied as it is.
    create_tables(spark, target, (table,), constrains=False)
    empty = read(spark, target, table).limit(0).select(*table.names)
    known = read(spark, source, table, version)
    rows = empty.unionByName(known.select(*(name for name in table.names if name in known.columns)), True)  # noqa: FBT003 - its only form
    expected = _content(rows, table)
    if not has_rows(target, table):
        append_frame(rows, target, table)
    if _content(read(spark, target, table), table) != expected:
        raise UserError(
            f"The table {table.name} in {shown(target)} has other rows than the one in "
            f"{shown(source)}: remove it there, or copy into an empty place."
        )
    create_tables(spark, target, (table,))
    write_whole(note, json.dumps(done))
    return f"{count(expected[0], 'row')} copied and compared"


def _content(rows: DataFrame, table: Table) -> Content:
    # As JSON, because Spark has no hash of a map.
    hashed = F.xxhash64(F.to_json(F.struct(*table.names))).cast("decimal(38,0)")
    found = rows.agg(F.count("*"), F.sum(hashed)).collect()[0]
    return int(found[0]), int(found[1] or 0)
