"""A killed `maintain` leaves bronze as it was, row by row, wherever it was killed, and the next one finishes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.matrix import Trial
from tests.faults.process import Job, finished
from tests.faults.tables import content, difference
from tests.faults.test_ingest import commits

pytestmark = pytest.mark.faults

TABLE = "coordinator_records"


@pytest.fixture(scope="module")
def fragmented(tmp_path_factory, recorded) -> Path:
    """A warehouse with all of bronze, in the files of a dozen batches."""
    warehouse = tmp_path_factory.mktemp("fragmented") / "warehouse"
    finished("ingest", warehouse, replace(recorded, max_offsets_per_trigger=1_000))
    return warehouse


def parts(warehouse: Path) -> int:
    return len(list((warehouse / TABLE).glob("part-*.parquet")))


POINTS: dict[str, Callable[[Path, Path], bool]] = {
    "compacted file begun": lambda now, before: parts(now) > parts(before),
    "compacted file committed": lambda now, before: commits(now, TABLE) > commits(before, TABLE),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_of_maintain_changes_no_row(matrix, warehouse, recorded, fragmented, undisturbed, point, number) -> None:
    trial = matrix(f"kill -9 of maintain: {point}", Trial())
    shutil.copytree(fragmented, warehouse)
    job = Job("maintain", warehouse, recorded)
    trial.is_hit = job.until(lambda: POINTS[point](warehouse, fragmented))
    job.kill()
    assert difference(undisturbed, content(warehouse)).is_identical
    trial.seconds = finished("maintain", warehouse, recorded)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical
