"""Python workers of Spark that do not start, or are killed repeatedly: work is repeated, and no trace is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.matrix import Trial
from tests.faults.points import INGEST, killed
from tests.faults.process import Job, finished
from tests.faults.tables import content, difference
from tests.faults.test_build import compared
from tests.jobs.conftest import silver
from tests.maintain.conftest import silver_again

pytestmark = pytest.mark.faults

FAILING = """
import os, sys

if {program!r} in " ".join(sys.orig_argv):
    with open({counted!r}, "a+") as counted:
        counted.write("started\\n")
        counted.seek(0)
        if len(counted.readlines()) <= {times}:
            os._exit(1)
"""
"""Python imports a module of this name when it starts, and the first few of a program end there."""

PROGRAMS = {
    "of tasks": "jobs.spark.worker_daemon",
    "of the stream's offsets": "pyspark.sql.streaming.python_streaming_source_runner",
    "of the source's schema": "pyspark.sql.worker.create_data_source",
}
ALWAYS = 1_000


def failing(folder: Path, program: str, times: int) -> Path:
    folder.mkdir()
    text = FAILING.format(program=program, counted=str(folder / "started"), times=times)
    (folder / "sitecustomize.py").write_text(text)
    return folder


@pytest.mark.parametrize("which", PROGRAMS)
def test_reading_goes_on_when_workers_start_at_last(
    matrix, warehouse, tmp_path, recorded, undisturbed, which, number
) -> None:
    trial = matrix(f"Python workers {which} end at their start, three times", Trial())
    killed("ingest", warehouse, recorded, INGEST["commits file written"])
    modules = failing(tmp_path / "modules", PROGRAMS[which], times=3)
    job = Job("ingest", warehouse, recorded, modules=modules)
    assert 0 == job.end(), job.tail()
    assert "Reading failed and is restarted: A Python worker of Spark" in job.text()
    trial.is_hit = len((modules / "started").read_text().splitlines()) > 3
    assert not job.traces()
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical


@pytest.mark.parametrize("which", PROGRAMS)
def test_reading_ends_with_a_sentence_when_no_worker_starts(
    matrix, warehouse, tmp_path, recorded, undisturbed, which, number
) -> None:
    trial = matrix(f"Python workers {which} never start", Trial())
    killed("ingest", warehouse, recorded, INGEST["commits file written"])
    job = Job("ingest", warehouse, recorded, modules=failing(tmp_path / "modules", PROGRAMS[which], ALWAYS))
    trial.is_hit = 2 == job.end()
    assert trial.is_hit, job.tail()
    assert "again and again: start this command again" in job.text().splitlines()[-1]
    assert not job.traces()
    trial.seconds = finished("ingest", warehouse, recorded)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical


@pytest.mark.parametrize("times", [2, ALWAYS])
def test_a_rebuild_is_repeated_and_ends_with_a_sentence(matrix, warehouse, tmp_path, recorded, times, number) -> None:
    often = "never start" if times == ALWAYS else f"end at their start, {times} times"
    trial = matrix(f"rebuild: Python workers {often}", Trial())
    finished("ingest", warehouse, recorded)
    finished("build", warehouse, recorded)
    modules = failing(tmp_path / "modules", PROGRAMS["of tasks"], times)
    job = Job("rebuild", warehouse, recorded, modules=modules)
    code = job.end()
    trial.is_hit = (modules / "started").exists()
    assert not job.traces()
    assert "A Python worker of Spark did not start" in job.text()
    last = job.text().splitlines()[-1]
    assert (code, "again and again: start this command again" in last) == ((2, True) if times == ALWAYS else (0, False))
    trial.found = compared(silver_again(warehouse), silver(warehouse))
    assert trial.found.is_identical
