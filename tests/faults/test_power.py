"""The machine loses power while a job writes: the tables are those of an undisturbed run, or one sentence says what to
do.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.disk import Disk, unavailable
from tests.faults.matrix import Trial
from tests.faults.points import BUILDING, INGEST, MAINTAIN, killed
from tests.faults.process import Job
from tests.faults.tables import content, difference
from tests.faults.test_build import compared
from tests.jobs.conftest import silver
from tests.maintain.conftest import silver_again

pytestmark = pytest.mark.faults

TORN = re.compile(r"The progress in (?P<folder>\S+) is torn|delete (?P<file>/\S+), ")
"""A refusal, with the folder or file that it says to delete."""


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    if why := unavailable():
        pytest.skip(why)
    with Disk(tmp_path / "disk", tmp_path / "images") as mounted:
        yield mounted


def finished_as_told(command: str, warehouse: Path, cluster) -> float:
    """Run the job until it succeeds; if it refuses torn files, delete those that it names."""
    for _ in range(9):
        began = time.monotonic()
        job = Job(command, warehouse, cluster)
        if job.end() == 0:
            return time.monotonic() - began
        if refused := TORN.search(job.tail().splitlines()[-1]):
            delete(Path(refused["folder"] or refused["file"]))
    raise AssertionError(job.tail())


def delete(named: Path) -> None:
    if named.is_dir():
        shutil.rmtree(named)
        return
    named.unlink(missing_ok=True)
    if named.name.endswith(".checkpoint.parquet"):
        named.with_name("_last_checkpoint").unlink(missing_ok=True)


@pytest.mark.parametrize("name", INGEST)
def test_power_cuts_while_bronze_is_written_change_no_row(matrix, disk, recorded, undisturbed, name, number) -> None:
    trial = matrix(f"power cut: {name}", Trial())
    warehouse = disk.folder / "life" / "warehouse"
    trial.is_hit = killed("ingest", warehouse, recorded, INGEST[name])
    disk.cut()
    trial.seconds = finished_as_told("ingest", warehouse, recorded)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical, trial.found


def test_power_cuts_while_silver_is_written_and_compacted_change_no_row(
    matrix, disk, recorded, undisturbed, number
) -> None:
    warehouse, cluster = disk.folder / "life" / "warehouse", replace(recorded, max_offsets_per_trigger=1_000)
    trials = {name: matrix(f"power cut: {name}", Trial()) for name in (*BUILDING, *MAINTAIN)}
    for name, point in BUILDING.items():
        killed("ingest", warehouse, cluster, INGEST["commits file written"], after=0)
        trials[name].is_hit = killed("build", warehouse, cluster, point, in_steps=True)
        disk.cut()
    finished_as_told("ingest", warehouse, cluster)
    finished_as_told("build", warehouse, cluster)
    for name, point in MAINTAIN.items():
        trials[name].is_hit = killed("maintain", warehouse, cluster, point)
        disk.cut()
    took = finished_as_told("maintain", warehouse, cluster)
    bronze = difference(undisturbed, content(warehouse))
    built = compared(silver_again(warehouse), silver(warehouse))
    for trial in trials.values():
        trial.seconds, trial.found = took, bronze if built.is_identical else built
    assert bronze.is_identical, bronze
    assert built.is_identical, built
