"""The process that replays groups: its rows are those of this process, however it ends, and it ends with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

import jobs.processes.worker_process
from dashboards.lake.lake import milliseconds
from jobs.gold.replaying import Replaying
from jobs.processes.worker_process import NICER, WorkerProcessError
from pipelines.arrow_types import stored
from pipelines.gold.groups import INPUTS, Known, gold_of_few
from pipelines.gold.rows import AnalysisConfig
from testing.running import is_running
from testing.waiting import wait_until
from tests.gold.histories import START, EagerGroup
from tests.whole_rows import whole

GROUP = ("kafka", "orders")


@pytest.fixture(scope="module")
def question(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silver")
    for table in INPUTS:
        rows = [
            whole({**row, "cluster": GROUP[0], "group_id": GROUP[1]}, table) for row in _group().silver()[table.name]
        ]
        pq.write_table(stored(rows, table), folder / table.name)
    files = {table.name: [str(folder / table.name)] for table in INPUTS}
    return files, {GROUP: 0}, Known(observed={}, until_ms={"kafka": START + 4_000_000}), AnalysisConfig()


def _group() -> EagerGroup:
    group = EagerGroup()
    for turn in range(6):
        group.restarts(turn % 3, 100_000 + turn * 100_000, 20_000)
    return group


@pytest.fixture(scope="module")
def expected(question):
    files, *others = question
    silver = {name: milliseconds(pq.read_table(path)) for name, (path,) in files.items()}
    return gold_of_few(silver, *others)


def test_it_answers_as_one_would_here_and_gives_way_to_others(question, expected) -> None:
    assert sum(rows.num_rows for rows in expected.values()) > 0
    with Replaying() as replaying:
        assert replaying.gold(*question) == expected
        first = replaying._process.pid
        assert os.getpriority(os.PRIO_PROCESS, first) == os.getpriority(os.PRIO_PROCESS, 0) + NICER
        os.kill(first, signal.SIGKILL)
        replaying._process.wait()
        assert replaying.gold(*question) == expected, "another one answers"
        second = replaying._process
        assert second.pid != first
    assert second.poll() is not None


def test_one_that_is_old_ends_and_another_one_answers(question, expected, monkeypatch) -> None:
    with Replaying() as replaying:
        assert replaying.gold(*question) == expected
        first = replaying._process
        monkeypatch.setattr(jobs.processes.worker_process, "RENEWED_S", 0.0)
        assert replaying.gold(*question) == expected
        assert first.poll() is not None
        assert replaying._process.pid != first.pid


def test_what_fails_there_is_reported_here(question, expected) -> None:
    files, scope, known, _ = question
    with Replaying() as replaying:
        with pytest.raises(WorkerProcessError, match="AttributeError"):
            replaying.gold(files, scope, known, None)
        assert replaying.gold(*question) == expected, "and it goes on"


def test_it_ends_with_who_started_it() -> None:
    asks = (
        "from jobs.gold.replaying import Replaying\nfrom pipelines.gold.groups import INPUTS, Known\n"
        "from pipelines.gold.rows import AnalysisConfig\nimport time\n"
        "one, nothing = Replaying(), {table.name: [] for table in INPUTS}\n"
        "one.gold(nothing, {}, Known(observed={}, until_ms={}), AnalysisConfig())\n"
        "print(one._process.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", asks], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    wait_until(lambda: not is_running(child))
