"""`build` while bronze is read again: the silver tables are those of an undisturbed build."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.faults.matrix import Trial
from tests.faults.points import INGEST, killed
from tests.faults.process import finished
from tests.faults.tables import Difference
from tests.jobs.conftest import differing, silver

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def read(tmp_path_factory, recorded) -> Path:
    """A warehouse with all of bronze."""
    warehouse = tmp_path_factory.mktemp("read") / "warehouse"
    finished("ingest", warehouse, recorded)
    return warehouse


@pytest.fixture(scope="module")
def quiet(tmp_path_factory, recorded, read) -> dict[str, list[str]]:
    """Silver of a build that nobody disturbed."""
    warehouse = tmp_path_factory.mktemp("quiet") / "warehouse"
    shutil.copytree(read, warehouse)
    finished("build", warehouse, recorded)
    return silver(warehouse)


def compared(quiet: dict[str, list[str]], found: dict[str, list[str]]) -> Difference:
    rows = [row for side in differing(quiet, found).values() for row in side]
    lost, more = (sum(row.startswith(sign) for row in rows) for sign in "-+")
    return Difference(lost=lost, duplicated=more, is_identical=not rows)


def test_bronze_that_is_read_again_after_a_lost_checkpoint_does_not_stop_build(
    matrix, warehouse, recorded, quiet, number
) -> None:
    """What a batch without coverage wrote is deleted from bronze, which `build` follows."""
    trial = matrix("checkpoint of ingest lost after build read its rows", Trial())
    trial.is_hit = killed("ingest", warehouse, recorded, INGEST["offset_commits written"])
    finished("build", warehouse, recorded)
    shutil.rmtree(warehouse / "_checkpoints" / "ingest")
    finished("ingest", warehouse, recorded)
    trial.seconds = finished("build", warehouse, recorded)
    trial.found = compared(quiet, silver(warehouse))
    assert trial.found.is_identical
