"""Children end with their parent, and get SIGTERM first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.processes.processes import Supervised
from testing.running import is_running
from testing.waiting import wait_until

ROOT = Path(__file__).parents[2]
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_stopped_child_is_gone_when_stop_returns(tmp_path):
    child = Supervised(["sleep", "600"], output=tmp_path / "out")
    child.stop()
    assert not is_alive(child.pid)


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_period(tmp_path):
    child = Supervised([sys.executable, "-c", STUBBORN], output=tmp_path / "out", grace_s=0.2)
    wait_until((tmp_path / "out").read_text)
    child.stop()
    assert not is_alive(child.pid)


def test_a_child_gives_way_within_the_session_where_niceness_counts(tmp_path):
    child = Supervised(["sleep", "600"], output=tmp_path / "out", nicer=7)
    assert os.getpriority(os.PRIO_PROCESS, child.pid) == os.getpriority(os.PRIO_PROCESS, 0) + 7
    assert os.getsid(child.pid) == os.getsid(0)
    assert os.getpgid(child.pid) == child.pid
    child.stop()


def test_a_child_ends_when_its_supervisor_is_killed(tmp_path):
    child = Supervised(["sleep", "600"], output=tmp_path / "out")
    os.kill(child._supervisor.pid, signal.SIGKILL)
    wait_until(lambda: not is_running(child.pid))
    child.stop()


def test_a_child_that_ends_by_itself_is_noticed(tmp_path):
    child = Supervised(["sh", "-c", "echo done"], output=tmp_path / "out")
    wait_until(lambda: not child.is_alive())
    child.stop()
    assert "done\n" == (tmp_path / "out").read_text()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_when_its_parent_is_killed(tmp_path, end):
    program = (
        "import time; from pathlib import Path; from jobs.processes.processes import Supervised\n"
        f"print(Supervised(['sleep', '600'], output=Path({str(tmp_path / 'out')!r})).pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.send_signal(end)
    wait_until(lambda: not is_running(child))
