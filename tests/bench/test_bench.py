"""`regroup bench` lists the benchmarks, and passes a benchmark its own arguments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.bench import FOLDER, measurements
from jobs.cli import main


def test_every_measurement_says_in_a_sentence_what_it_measures(capsys) -> None:
    assert 0 == main(["bench"])
    lines = capsys.readouterr().out.splitlines()
    assert list(measurements(FOLDER)) == [line.split()[0] for line in lines]
    assert all(line.endswith((".", "`.", ":")) and len(line.split()) > 4 for line in lines)


def test_what_cannot_be_measured_is_answered_with_what_can(capsys) -> None:
    assert 2 == main(["bench", "speed"])
    assert "no benchmark speed: choose one of aged_day, alerts, " in capsys.readouterr().err


def test_a_wheel_without_benches_says_where_they_are(capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("jobs.bench.FOLDER", tmp_path)
    assert 2 == main(["bench", "pages"])
    assert "from a checkout" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["storm-tables", "storm_tables"])
def test_a_measurement_gets_its_own_arguments(name, capsys) -> None:
    assert 0 == main(["bench", name, "--help"])
    assert f"usage: regroup bench {name} [-h]" in capsys.readouterr().out


LASTING = """'''Waits for a child.'''
import subprocess, sys, time


def main():
    child = subprocess.Popen(["sleep", "600"])
    try:
        print(child.pid, flush=True)
        # Not `wait`: it does not see a signal that comes just before it blocks.
        while child.poll() is None:
            time.sleep(0.05)
    finally:
        child.terminate()
        child.wait()


main()
"""


def test_a_measurement_that_is_terminated_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__init__.py").touch()
    (tmp_path / "bench" / "lasting.py").write_text(LASTING)
    program = (
        "import sys, jobs.bench; from pathlib import Path; from jobs.cli import main; "
        "jobs.bench.FOLDER = Path(sys.argv[1]); sys.exit(main(['bench', 'lasting']))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "bench")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        child = int(run.stdout.readline())
        run.terminate()
        assert 128 + signal.SIGTERM == run.wait(120)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
