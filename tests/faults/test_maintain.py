"""A killed `maintain` leaves bronze and silver as they were, row by row, wherever it was killed, and the next one
finishes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.faults.matrix import Trial
from tests.faults.process import Job, finished
from tests.faults.tables import content, difference
from tests.faults.test_ingest import commits

pytestmark = pytest.mark.faults

BRONZE_TABLE, SILVER_TABLE = "coordinator_records", "generations"
FILES = 12


@pytest.fixture(scope="module")
def fragmented(tmp_path_factory, recorded) -> Path:
    """A warehouse with all of bronze, in the files of a dozen batches, and a table of silver in as many."""
    warehouse = tmp_path_factory.mktemp("fragmented") / "warehouse"
    finished("ingest", warehouse, replace(recorded, max_offsets_per_trigger=1_000))
    finished("build", warehouse, recorded)
    path = warehouse / SILVER_TABLE
    rows = DeltaTable(path).to_pyarrow_table()
    DeltaTable(path).delete()
    for number in range(FILES):
        write_deltalake(path, rows.take(list(range(number, rows.num_rows, FILES))), mode="append")
    return warehouse


def parts(warehouse: Path, table: str) -> int:
    return len(list((warehouse / table).glob("part-*.parquet")))


def generations(warehouse: Path) -> list[str]:
    return sorted(map(repr, DeltaTable(warehouse / SILVER_TABLE).to_pyarrow_table().to_pylist()))


POINTS: dict[str, Callable[[Path, Path, str], bool]] = {
    "compacted file begun": lambda now, before, table: parts(now, table) > parts(before, table),
    "compacted file committed": lambda now, before, table: commits(now, table) > commits(before, table),
}


@pytest.mark.parametrize("table", [BRONZE_TABLE, SILVER_TABLE])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_of_maintain_changes_no_row(
    matrix, warehouse, recorded, fragmented, undisturbed, point, table, number
) -> None:
    trial = matrix(f"kill -9 of maintain: {point} of {table}", Trial())
    shutil.copytree(fragmented, warehouse)
    job = Job("maintain", warehouse, recorded)
    trial.is_hit = job.until(lambda: POINTS[point](warehouse, fragmented, table))
    job.kill()
    assert generations(fragmented) == generations(warehouse)
    assert difference(undisturbed, content(warehouse)).is_identical
    trial.seconds = finished("maintain", warehouse, recorded)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical
    assert generations(fragmented) == generations(warehouse)
    assert 1 == len(DeltaTable(warehouse / SILVER_TABLE).file_uris())
