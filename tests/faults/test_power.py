"""The machine loses power while a job writes: the same command continues, to the tables of an undisturbed run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.matrix import Trial
from tests.faults.points import BUILDING, INGEST, MAINTAIN, killed
from tests.faults.process import finished
from tests.faults.tables import content, difference
from tests.faults.test_build import compared
from tests.jobs.conftest import silver
from tests.maintain.conftest import silver_again

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("name", INGEST)
def test_power_cuts_while_bronze_is_written_change_no_row(matrix, disk, recorded, undisturbed, name, number) -> None:
    trial = matrix(f"power cut: {name}", Trial())
    warehouse = disk.folder / "life" / "warehouse"
    trial.is_hit = killed("ingest", warehouse, recorded, INGEST[name])
    disk.cut()
    trial.seconds = finished("ingest", warehouse, recorded, attempts=1)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical, trial.found


def test_power_cuts_while_silver_is_written_and_compacted_change_no_row(
    matrix, disk, recorded, undisturbed, number
) -> None:
    warehouse, cluster = disk.folder / "life" / "warehouse", replace(recorded, max_offsets_per_trigger=1_000)
    trials = {name: matrix(f"power cut: {name}", Trial()) for name in (*BUILDING, *MAINTAIN)}
    killed("ingest", warehouse, cluster, INGEST["commits file written"])
    # The first build, without Spark, has none of the points.
    finished("build", warehouse, cluster, attempts=1)
    for name, point in BUILDING.items():
        killed("ingest", warehouse, cluster, INGEST["commits file written"], after=0)
        trials[name].is_hit = killed("build", warehouse, cluster, point, in_steps=True)
        disk.cut()
    finished("ingest", warehouse, cluster, attempts=1)
    finished("build", warehouse, cluster, attempts=1)
    for name, point in MAINTAIN.items():
        trials[name].is_hit = killed("maintain", warehouse, cluster, point)
        disk.cut()
    took = finished("maintain", warehouse, cluster, attempts=1)
    bronze = difference(undisturbed, content(warehouse))
    built = compared(silver_again(warehouse), silver(warehouse))
    for trial in trials.values():
        trial.seconds, trial.found = took, bronze if built.is_identical else built
    assert bronze.is_identical, bronze
    assert built.is_identical, built
