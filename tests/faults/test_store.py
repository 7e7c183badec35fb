"""Jobs on an object store, killed after a number of new objects that is drawn: the rows are those of a local run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Thread

import pytest
from pyarrow.fs import FileSelector

from schemas.gold import GROUP_TABLES
from schemas.silver import SILVER
from testing.object_store import S3Server
from testing.waiting import wait_until
from tests.faults.matrix import Trial
from tests.faults.process import Job
from tests.faults.test_build import compared
from tests.jobs.s3.conftest import commands, serving
from tests.jobs.s3.test_s3_address import ADDRESS, TABLES, rows

pytestmark = pytest.mark.faults

KILLS = 4
"""Kills of each job."""

MOST_OBJECTS = {"ingest": 60, "build": 30, "analyze": 15, "maintain": 4}
"""Highest number of new objects after which a job is killed. A job that ends before leaves nothing to do for the next
one, so these are fewer than it makes.
"""


@pytest.fixture
def server():
    with serving() as running:
        yield running


def objects(server: S3Server) -> set[str]:
    found = server.files.get_file_info(FileSelector(ADDRESS.partition("://")[2], recursive=True, allow_not_found=True))
    return {each.path for each in found if each.is_file}


def killed(server: S3Server, folder: Path, words: Sequence[str], after: int) -> bool:
    """Run the command on an empty machine, kill it after so many new objects, and return whether it still ran."""
    before = objects(server)
    with commands(server, folder) as process:

        def run() -> None:
            # The process ends without an answer if it is killed.
            with suppress(AssertionError):
                process.run(*words)

        running = Thread(target=run)
        running.start()
        wait_until(lambda: len(objects(server) - before) >= after or not running.is_alive())
        still_ran = running.is_alive()
        process.kill()
        running.join()
    return still_ran


def test_jobs_killed_after_any_object_end_in_the_rows_of_a_local_run(
    server, matrix, recorded, tmp_path, number, request
) -> None:
    local, drawn = tmp_path / "local" / "folder", Random(request.config.getoption("--drawn-from") + number)
    cluster = replace(recorded, max_offsets_per_trigger=1_000)
    for command in ("ingest", "build", "analyze"):
        assert 0 == Job(command, local, cluster).end()
    at = ["--once", "--warehouse", ADDRESS, "--config", str(local.parent / "regroup.toml")]
    written = {"ingest": TABLES, "build": SILVER, "analyze": GROUP_TABLES, "maintain": (*SILVER, *GROUP_TABLES)}
    for command, tables in written.items():
        trials = [matrix(f"kill -9 in a store: {command}", Trial()) for _ in range(KILLS)]
        for place, trial in enumerate(trials):
            after = drawn.randint(1, MOST_OBJECTS[command])
            trial.is_hit = killed(server, tmp_path / f"{command} {place}", [command, *at], after)
        with commands(server, tmp_path / command) as process:
            for _ in range(2):
                assert 0 == process.run(command, *at), process.printed
        expected, found = rows(str(local), tables), rows(ADDRESS, tables)
        for trial in trials:
            trial.found = compared(expected, found)
        assert expected == found
