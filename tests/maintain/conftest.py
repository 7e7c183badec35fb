"""A warehouse with a recorded history, read in several batches; each test has its own copy.

Spark creates only the tables whose clustering matters here, because it takes a second for each.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.gold.analyze_part import analysed_path
from jobs.gold.storm_memory import SCHEMA, Memory
from jobs.gold.storms import memory_path
from jobs.replay import Capture, bronze_of, split
from jobs.tables.append import append
from jobs.tables.create_tables import create
from jobs.tables.paths import table_path
from jobs.tables.tables import FolderTables
from pipelines.arrow_types import schema_of, stored
from pipelines.silver.rows import silver_rows
from schemas.bronze import (
    BRONZE,
    COORDINATOR_EVENTS,
    COORDINATOR_RECORDS,
    COVERAGE,
    OFFSET_COMMITS,
    QUARANTINE,
)
from schemas.gold import ADVICE, ALERTS, DEPLOYS, GROUP_TABLES, STORMS, VERDICTS
from schemas.operations import QUALITY_RESULTS
from schemas.silver import GENERATIONS, SILVER
from schemas.tables import Table
from testing.recordings import CAPTURES
from testing.warehouses.new_files import in_files
from testing.warehouses.rebuilding import histories_of
from tests.source.offset_records import group_key
from tests.whole_rows import whole

CLUSTER = "kafka"
QUIET_MS = 10_000
Bronze = Mapping[str, list[dict[str, Any]]]
FILLED = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS, COVERAGE)


def arrow(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema_of(table))


def batches(count: int = 6) -> list[Bronze]:
    capture = Capture(CAPTURES / "eager_churn")
    return [bronze_of(batch, "kafka", capture.meta) for batch in split(capture, ("offsets", "log"), count, None)]


def rebuilt(bronze: Sequence[Bronze]) -> dict[str, list[dict[str, Any]]]:
    """Return silver of these rows by table, with timestamps in milliseconds."""
    made = [silver_rows(history, QUIET_MS) for history in histories_of(bronze)]
    return {table.name: [row for each in made for row in each[table.name]] for table in SILVER}


def texts(rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Rows of silver as `tests.jobs.conftest.silver` gives those of a warehouse."""
    return {table.name: sorted(map(repr, stored(rows[table.name], table).to_pylist())) for table in SILVER}


def rows(warehouse: Path, table: Table) -> list[dict[str, Any]]:
    return DeltaTable(table_path(warehouse, table)).to_pyarrow_table(columns=list(table.names)).to_pylist()


def silver_again(warehouse: Path) -> dict[str, list[str]]:
    """Return silver rebuilt from the present bronze."""
    return texts(rebuilt([{table.name: rows(warehouse, table) for table in FILLED}]))


def add(spark, warehouse: Path, bronze: Sequence[Bronze]) -> None:
    """Add the rows of several batches, each in separate files."""
    for table in FILLED:
        parts = [arrow(table, batch[table.name]) for batch in bronze]
        if table is OFFSET_COMMITS:
            append(spark, warehouse, in_files(warehouse, table, parts))
            continue
        for part in parts:
            write_deltalake(table_path(warehouse, table), part, mode="append")


def make(spark, warehouse: Path, bronze: Sequence[Bronze]) -> None:
    """Create a warehouse with this bronze and its silver."""
    for table in (*BRONZE, *SILVER):
        create(warehouse, table)
    add(spark, warehouse, bronze)
    made = rebuilt(bronze)
    for table in SILVER:
        FolderTables(warehouse).append(table, made[table.name])


@pytest.fixture(scope="session")
def recorded_once(spark, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "warehouse"
    make(spark, folder, batches())
    return folder


@pytest.fixture
def recorded(recorded_once, warehouse) -> Path:
    shutil.copytree(recorded_once, warehouse)
    return warehouse


def contents(warehouse: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and bytes of every file except Delta's log, and the content of Parquet files as text."""
    for path in sorted(warehouse.rglob("*")):
        if path.is_dir() or "_delta_log" in path.parts:
            continue
        yield path.name, path.read_bytes().decode("latin-1")
        if path.suffix == ".parquet":
            # `repr` twice, so that bytes of raw records appear as letters.
            yield str(path.relative_to(warehouse)), repr(pq.ParquetFile(path).read().to_pylist())


@pytest.fixture
def described(recorded) -> tuple[Path, str]:
    """The recorded history, and a group that also appears in all other tables."""
    group = max(rows(recorded, GENERATIONS), key=lambda row: row["member_count"])["group_id"]
    about = {"cluster": CLUSTER, "started_at": 1}
    stuck = about | {"alert_name": "stuck", "subject": group}
    storm = about | {"alert_name": "storm", "subject": "", "summary": f"{group} and other-group"}
    FolderTables(recorded).append(ALERTS, [whole(stuck, ALERTS), whole(storm, ALERTS)])
    mine = about | {"group_id": group, "evidence": "inferred"}
    other = about | {"group_id": "other-group", "evidence": "observed", "text": f"v2 of {group}"}
    FolderTables(recorded).append(DEPLOYS, [whole(mine, DEPLOYS), whole(other, DEPLOYS)])
    hit = [{"group_id": g, "rebalances": 2, "lost_resource_seconds": 1.5} for g in (group, "other-group")]
    both = {"cluster": CLUSTER, "storm_id": "s", "started_at": 1, "group_ids": [group, "other-group"], "by_group": hit}
    write_deltalake(table_path(recorded, STORMS), arrow(STORMS, [both]), mode="append")
    ended = {"changed_ms": 1, "change": "deleted", "text": f"deleted payments/{group}", "detail": group}
    ended |= {"instance": f"app ({group})", "joined_by": "name"}
    blamed = {"cluster": CLUSTER, "group_id": "other-group", "incarnation": 0, "generation_id": 1, "joined_at": 1}
    verdict = whole(blamed | {"pod_changes": [ended]}, VERDICTS)
    write_deltalake(table_path(recorded, VERDICTS), arrow(VERDICTS, [verdict]), mode="append")
    rule = {"table_name": "t", "checked_at": 1, "rule": "r"}
    FolderTables(recorded).append(
        QUALITY_RESULTS,
        [whole(rule | {"examples": [f"kafka, {group}, 0", "kafka, other, 0"]}, QUALITY_RESULTS)],
    )
    place = {"cluster": CLUSTER, "source": "__consumer_offsets", "log_epoch": 0, "source_partition": 0}
    place |= {"reason": "truncated", "detail": "cut short", "raw_value": b"\xff"}
    keys = enumerate((group_key(group), group_key("other")))
    kept = arrow(QUARANTINE, [place | {"source_offset": at, "raw_key": key} for at, key in keys])
    write_deltalake(table_path(recorded, QUARANTINE), kept, mode="append")
    Memory(snapshots={}, disturbances=SCHEMA.empty_table()).save(memory_path(recorded))
    analysed_path(recorded).parent.mkdir(parents=True)
    for tables in (GROUP_TABLES, (ADVICE,)):
        described = json.dumps({"marks": [["kafka", 1, group, "deploy", "v2"]]})
        analysed_path(recorded, tables).write_text(described)
    return recorded, group
