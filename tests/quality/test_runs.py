"""Every run of a job is recorded: its start, and how it ended unless it was killed."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from deltalake import DeltaTable

from jobs import cli
from jobs.cli import main
from jobs.config.clusters import Cluster
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.processes.runs import Runs
from jobs.tables.tables import MOST_FILES, FolderTables
from jobs.tables.transactions import table_lock
from schemas.operations import JOB_RUNS
from schemas.states import JobOutcome
from testing.waiting import wait_until
from tests.whole_rows import whole

RUNNING = """
import sys, time
from pathlib import Path
from jobs.processes.runs import Runs
from jobs.tables.tables import FolderTables
from tests.whole_rows import whole

with Runs(tables=FolderTables(Path(sys.argv[1])), job="build", say=print) as runs, runs.until_terminated():
    print("running", flush=True)
    # Not one long sleep: that does not see a signal that comes just before it begins.
    while True:
        time.sleep(0.05)
"""


def results(warehouse) -> list[dict]:
    if not (warehouse / JOB_RUNS.name / "_delta_log").is_dir():
        return []
    rows = DeltaTable(str(warehouse / JOB_RUNS.name)).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["told_at"], row["job"]))


def outcomes(warehouse, job: str = "build") -> list[str]:
    return [row["outcome"] for row in results(warehouse) if row["job"] == job]


@pytest.fixture
def there(warehouse):
    warehouse.mkdir()
    return warehouse


def failing(warehouse, error: BaseException, **more) -> None:
    with pytest.raises(type(error)), Runs(tables=FolderTables(warehouse), job="build", say=print, **more):
        raise error


def test_a_run_tells_when_it_begins_and_how_it_ended(there) -> None:
    with Runs(tables=FolderTables(there), job="build", say=print):
        assert ["running"] == outcomes(there)
    first, last = results(there)
    assert ("succeeded", None) == (last["outcome"], last["error"])
    assert first["run_id"] == last["run_id"]
    assert first["started_at"] == last["started_at"] <= last["ended_at"] == last["told_at"]
    assert first["ended_at"] is None
    assert last["regroup_version"]
    assert last["host"]


def test_a_failure_is_reported_in_one_line_without_secrets(there) -> None:
    failing(there, UserError("The password hunter22 is wrong.\nAnd more."), secrets=("hunter22",))
    assert "The password (secret) is wrong." == results(there)[-1]["error"]
    failing(there, ValueError("x" * 5000))
    assert results(there)[-1]["error"].startswith("ValueError: xxx")
    assert len(results(there)[-1]["error"]) == 300
    assert ["running", "failed"] * 2 == outcomes(there)


def test_secrets_of_the_settings_are_known_by_value(monkeypatch) -> None:
    monkeypatch.setenv("THE_PASSWORD", "hunter22")
    kafka = {"sasl.password": "env:THE_PASSWORD", "ssl.key.password": "env:ABSENT", "sasl.username": "regroup"}
    cluster = Cluster(name="a", bootstrap_servers="x:1", kafka=kafka)
    assert ("hunter22", "t0ken") == Settings(clusters=(cluster,), pages_token="t0ken").secrets()


def test_ctrl_c_is_reported_as_a_stop(there) -> None:
    failing(there, KeyboardInterrupt())
    assert ["running", "stopped"] == outcomes(there)


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGTERM, ["running", "stopped"]), (signal.SIGKILL, ["running"])]
)
def test_a_terminated_run_says_so_and_a_killed_one_nothing(there, number, expected) -> None:
    with subprocess.Popen([sys.executable, "-c", RUNNING, there], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        process.send_signal(number)
        assert -number == process.wait(120)
    assert expected == outcomes(there)


def test_a_run_goes_on_to_say_that_it_runs(there) -> None:
    with Runs(tables=FolderTables(there), job="build", say=print, heartbeat_ms=20):
        wait_until(lambda: len(results(there)) > 3)
    rows = results(there)
    assert {"running"} == {row["outcome"] for row in rows[:-1]}
    assert len(rows) == len({row["told_at"] for row in rows})
    time.sleep(0.1)
    assert len(rows) == len(results(there))


def test_a_place_that_takes_no_runs_is_shown_once_and_stops_nothing(there) -> None:
    (there / JOB_RUNS.name).write_text("in the way")
    printed = []
    with Runs(tables=FolderTables(there), job="build", say=printed.append) as runs:
        runs.start("part")
    (line,) = printed
    assert line.startswith("The runs of build are not recorded in job_runs: ")


def test_a_warehouse_that_is_not_there_is_not_made(warehouse) -> None:
    with Runs(tables=FolderTables(warehouse), job="build", say=print):
        pass
    assert not warehouse.exists()


def test_a_run_that_makes_the_warehouse_is_recorded_at_its_end(warehouse) -> None:
    with Runs(tables=FolderTables(warehouse), job="build", say=print):
        warehouse.mkdir()
    assert ["succeeded"] == outcomes(warehouse)


def test_of_several_parts_the_one_that_failed_first_is_the_one_that_failed(there) -> None:
    def up() -> None:
        with Runs(tables=FolderTables(there), job="up", say=print) as runs:
            runs.start("ingest", "build", "poll")
            with runs.failing("ingest"), runs.failing("build"):
                raise OSError("disk full")

    with pytest.raises(OSError, match="disk"):
        up()
    last = {row["job"]: (row["outcome"], row["error"], row["part_of"]) for row in results(there)}
    assert {
        "up": ("failed", "OSError: disk full", None),
        "build": ("failed", "OSError: disk full", "up"),
        "ingest": ("stopped", None, "up"),
        "poll": ("stopped", None, "up"),
    } == last


def test_only_the_first_end_counts(there) -> None:
    with Runs(tables=FolderTables(there), job="build", say=print) as runs:
        runs.end(JobOutcome.STOPPED)
    assert ["running", "stopped"] == outcomes(there)


def test_many_runs_do_not_become_many_files(there) -> None:
    row = whole({"job": "notify", "started_at": 1, "outcome": "running", "told_at": 1}, JOB_RUNS)
    for number in range(MOST_FILES + 2):
        FolderTables(there).append(JOB_RUNS, [row | {"run_id": str(number)}])
    table = DeltaTable(str(there / JOB_RUNS.name))
    assert MOST_FILES + 2 == table.to_pyarrow_table().num_rows
    assert 3 > len(table.file_uris())


def test_who_compacts_waits_for_another_who_does(there) -> None:
    """Otherwise both compactions would succeed, and each run would be stored twice."""
    row = whole({"job": "notify", "started_at": 1, "outcome": "running", "told_at": 1}, JOB_RUNS)
    path = str(there / JOB_RUNS.name)
    for number in range(MOST_FILES):
        FolderTables(there).append(JOB_RUNS, [row | {"run_id": str(number)}])
    with ThreadPoolExecutor(1) as pool:
        with table_lock(path, alone=True):
            ours = DeltaTable(path)
            theirs = pool.submit(FolderTables(there).append, JOB_RUNS, [row | {"run_id": "last"}])
            wait_until(lambda: DeltaTable(path).version() > ours.version())
            assert not theirs.done()
            ours.optimize.compact()
        theirs.result()
    assert MOST_FILES + 1 == DeltaTable(path).to_pyarrow_table().num_rows


def test_jobs_that_begin_at_once_are_all_recorded(there) -> None:
    def run(number: int) -> None:
        with Runs(tables=FolderTables(there), job=f"job {number}", say=print):
            pass

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(12)))
    assert {f"job {n}": ["running", "succeeded"] for n in range(12)} == {
        f"job {n}": outcomes(there, f"job {n}") for n in range(12)
    }


@pytest.mark.parametrize("command", cli.RECORDED)
def test_each_job_leaves_a_run(there, command, monkeypatch, capsys) -> None:
    def run(settings: Settings, args: argparse.Namespace) -> int:
        raise UserError(f"No {args.command} today.")

    monkeypatch.setattr(cli, "_command", lambda _: run)
    needed = {"replay": ["capture"], "erase": ["--cluster", "kafka", "--group", "g"]}
    assert main([command, *needed.get(command, []), "--warehouse", str(there)]) == 2
    assert ["running", "failed"] == outcomes(there, command)
    assert f"No {command} today." == results(there)[-1]["error"]
    assert f"regroup {command}: No {command} today.\n" == capsys.readouterr().err


def test_an_exit_code_is_a_failure(there, monkeypatch) -> None:
    monkeypatch.setattr(cli, "_command", lambda _: lambda *_: 1)
    assert main(["notify", "--once", "--warehouse", str(there)]) == 1
    assert ("failed", "The command ended with exit code 1.") == (
        results(there)[-1]["outcome"],
        results(there)[-1]["error"],
    )


def test_a_part_that_failed_and_began_anew_is_reported_as_two_runs(there) -> None:
    with Runs(tables=FolderTables(there), job="up", say=print) as runs:
        runs.start("ingest", "build")
        for _ in range(2):
            with suppress(OSError), runs.failing("build"):
                raise OSError("disk full")
            runs.failed("ingest", OSError("for that"))
            runs.again()
        runs.end(JobOutcome.STOPPED)
    found = [(row["job"], row["outcome"]) for row in results(there) if row["outcome"] != "running"]
    assert [("build", "failed")] * 2 + [("build", "stopped"), ("ingest", "stopped"), ("up", "stopped")] == sorted(found)
