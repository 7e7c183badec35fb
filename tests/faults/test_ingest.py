"""`ingest` as a process, disturbed at points that are visible from outside: the tables are as in a quiet run."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.tables.paths import table_path
from schemas.bronze import COORDINATOR_RECORDS
from tests.faults.matrix import Trial
from tests.faults.points import INGEST, STREAM, grows, is_open, killed, versions
from tests.faults.process import Job, finished
from tests.faults.tables import content, difference


def judged(trial: Trial, warehouse: Path, cluster, undisturbed) -> None:
    trial.seconds = finished("ingest", warehouse, cluster)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical, trial.found


def test_kills_in_a_row_at_three_points_change_no_row(matrix, warehouse, recorded, undisturbed, number) -> None:
    """The part of the matrix that every run has."""
    trial = matrix("kill -9: three points in a row", Trial())
    for point in ("offsets of a batch written", "coordinator_records written", "commits file written"):
        trial.is_hit |= killed("ingest", warehouse, recorded, INGEST[point])
    judged(trial, warehouse, recorded, undisturbed)


@pytest.mark.faults
@pytest.mark.parametrize(
    ("part", "program"),
    [("Python workers", b"jobs.spark.worker_daemon"), ("JVM, with its executor", b"org.apache.spark")],
)
def test_a_killed_part_changes_no_row(matrix, warehouse, recorded, undisturbed, part, program, number) -> None:
    trial = matrix(f"kill -9 within a batch: {part}", Trial())
    job = Job("ingest", warehouse, recorded)
    there = job.until(lambda: is_open(warehouse))
    trial.is_hit = job.kill_those(program) > 0 and there
    code = job.end()
    assert not job.traces()
    if part.startswith("JVM"):
        assert code == 2, job.tail()
        assert "Spark's JVM was ended by SIGKILL: start this command again" in job.tail().splitlines()[-1]
    judged(trial, warehouse, recorded, undisturbed)


@pytest.mark.faults
def test_a_lost_checkpoint_changes_no_row(matrix, warehouse, recorded, undisturbed, number) -> None:
    trial = matrix("checkpoint lost within a batch", Trial())
    trial.is_hit = killed("ingest", warehouse, recorded, INGEST["offset_commits written"])
    shutil.rmtree(warehouse / "_checkpoints")
    judged(trial, warehouse, recorded, undisturbed)


@pytest.mark.faults
def test_two_copies_at_once_change_no_row(matrix, warehouse, recorded, undisturbed, number) -> None:
    trial = matrix("two copies at once", Trial())
    copies = [Job("ingest", warehouse, recorded) for _ in range(2)]
    trial.is_hit = {0, 2} == {copy.end() for copy in copies}
    judged(trial, warehouse, recorded, undisturbed)


@pytest.mark.faults
@pytest.mark.parametrize("left", [0.0, 0.5, 0.999])
def test_a_torn_delta_log_is_deleted_and_its_work_repeated(
    matrix, warehouse, recorded, undisturbed, left, number
) -> None:
    """As after a power loss: the file was renamed, but its content was not written."""
    trial = matrix(f"newest Delta log file torn to {left:.1%}", Trial())
    trial.is_hit = killed("ingest", warehouse, recorded, INGEST["coordinator_records written"])
    newest = max((warehouse / "coordinator_records" / "_delta_log").glob("[0-9]*.json"))
    os.truncate(newest, int(newest.stat().st_size * left))
    job = Job("ingest", warehouse, recorded)
    assert 0 == job.end(), job.tail()
    assert "The newest commit of the table coordinator_records is torn" in job.text()
    assert not job.traces()
    judged(trial, warehouse, recorded, undisturbed)


@pytest.mark.faults
@pytest.mark.parametrize("left", [None, 0.0, 0.5])
@pytest.mark.parametrize("named", ["_last_checkpoint", "*.checkpoint.parquet"])
def test_a_damaged_table_checkpoint_is_removed_or_not_needed(
    matrix, warehouse, recorded, undisturbed, named, left, number
) -> None:
    trial = matrix(f"{named} {'deleted' if left is None else f'torn to {left:.0%}'}", Trial())
    small = replace(recorded, max_offsets_per_trigger=1_000)
    log = Path(table_path(warehouse, COORDINATOR_RECORDS)) / "_delta_log"
    trial.is_hit = killed("ingest", warehouse, small, grows(lambda w: versions(w, COORDINATOR_RECORDS) // 12))
    (file,) = log.glob(named)
    if left is None:
        file.unlink()
    else:
        os.truncate(file, int(file.stat().st_size * left))
    job = Job("ingest", warehouse, small)
    assert 0 == job.end(), job.tail()
    described = "The newest checkpoint of the table coordinator_records is torn or missing"
    assert (described in job.text()) == (named != "_last_checkpoint")
    assert not job.traces()
    judged(trial, warehouse, small, undisturbed)


@pytest.mark.faults
@pytest.mark.parametrize("left", [0.0, 0.5])
@pytest.mark.parametrize("name", ["offsets", "commits"])
def test_torn_progress_is_deleted_and_found_again_in_the_tables(
    matrix, warehouse, recorded, undisturbed, name, left, number
) -> None:
    trial = matrix(f"newest file in the stream's {name} torn to {left:.0%}", Trial())
    trial.is_hit = killed("ingest", warehouse, recorded, INGEST["commits file written"])
    stream = warehouse / STREAM
    file = max((stream / name).glob("[0-9]*"), key=lambda each: int(each.name))
    os.truncate(file, int(file.stat().st_size * left))
    job = Job("ingest", warehouse, recorded)
    assert 0 == job.end(), job.tail()
    assert f"The progress in {stream} is torn" in job.text() or f"The newest file of the progress, {file}" in job.text()
    assert not job.traces()
    judged(trial, warehouse, recorded, undisturbed)


@contextmanager
def small_disk(folder: Path, size: str):
    """Needs the right to mount."""
    if os.geteuid() != 0:
        pytest.skip("a disk of one's own takes root")
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.faults
@pytest.mark.parametrize("size", ["100k", "250k", "500k"])
def test_a_full_disk_stops_and_goes_on_when_there_is_space(
    matrix, warehouse, recorded, undisturbed, size, number
) -> None:
    """The smaller the disk, the earlier it is full: while tables are created, or in an early or late batch."""
    trial = matrix(f"disk full at {size}", Trial())
    with small_disk(warehouse, size):
        job = Job("ingest", warehouse, recorded)
        trial.is_hit = 2 == job.end()
        assert trial.is_hit, job.tail()
        assert f"regroup ingest: No space is left on the disk of {warehouse}: make room" in job.tail()
        assert not job.traces()
        subprocess.run(["mount", "-o", "remount,size=64m", warehouse], check=True)
        judged(trial, warehouse, recorded, undisturbed)
