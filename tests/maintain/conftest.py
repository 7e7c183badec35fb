"""A warehouse with a recorded history, read in several batches; each test has its own copy.

Only the tables that are clustered in a way that matters here are made by Spark, for which each one is a second.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.replay import Capture, bronze_of, split
from jobs.tables.append import append
from jobs.tables.create_tables import create
from jobs.tables.delta_io import table_path
from jobs.tables.tables import FolderTables
from pipelines.arrow_types import schema_of, stored
from pipelines.silver.rows import silver_rows
from schemas.bronze import (
    BRONZE,
    COORDINATOR_EVENTS,
    COORDINATOR_RECORDS,
    COVERAGE,
    OFFSET_COMMITS,
)
from schemas.silver import SILVER
from schemas.tables import Table
from testing.recordings import CAPTURES
from testing.warehouses.new_files import in_files
from testing.warehouses.rebuilding import histories_of

QUIET_MS = 10_000
Bronze = Mapping[str, list[dict[str, Any]]]
FILLED = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS, COVERAGE)


def arrow(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema_of(table))


def batches(count: int = 6) -> list[Bronze]:
    capture = Capture(CAPTURES / "eager_churn")
    return [bronze_of(batch, "kafka", capture.meta) for batch in split(capture, ("offsets", "log"), count, None)]


def rebuilt(bronze: Sequence[Bronze]) -> dict[str, list[dict[str, Any]]]:
    """Silver of these rows, by table, instants in milliseconds."""
    made = [silver_rows(history, QUIET_MS) for history in histories_of(bronze)]
    return {table.name: [row for each in made for row in each[table.name]] for table in SILVER}


def texts(rows: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Rows of silver as `tests.jobs.conftest.silver` gives those of a warehouse."""
    return {table.name: sorted(map(repr, stored(rows[table.name], table).to_pylist())) for table in SILVER}


def rows(warehouse: Path, table: Table) -> list[dict[str, Any]]:
    return DeltaTable(table_path(warehouse, table)).to_pyarrow_table(columns=list(table.names)).to_pylist()


def silver_again(warehouse: Path) -> dict[str, list[str]]:
    """What silver would be, made from bronze as it stands."""
    return texts(rebuilt([{table.name: rows(warehouse, table) for table in FILLED}]))


def add(spark, warehouse: Path, bronze: Sequence[Bronze]) -> None:
    """Rows of several batches, each in files of its own."""
    for table in FILLED:
        parts = [arrow(table, batch[table.name]) for batch in bronze]
        if table is OFFSET_COMMITS:
            append(spark, warehouse, in_files(warehouse, table, parts))
            continue
        for part in parts:
            write_deltalake(table_path(warehouse, table), part, mode="append")


def make(spark, warehouse: Path, bronze: Sequence[Bronze]) -> None:
    """A warehouse with this bronze and its silver."""
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
