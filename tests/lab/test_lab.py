"""The lab as people start it: it churns within seconds, and leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.lab.scenarios import CHURN
from testing.waiting import wait_until

ROOT = Path(__file__).parents[2]


def parents() -> dict[int, int]:
    """Parent of each living process."""
    listing = subprocess.run(["ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


def descendants(pid: int) -> set[int]:
    children = {child for child, parent in parents().items() if parent == pid}
    return children.union(*map(descendants, children))


def stable_groups(folder: Path) -> set[str]:
    logs = "".join(log.read_text() for log in folder.glob("regroup-lab-*/server.log"))
    return set(re.findall(r"Stabilized group (\S+) generation", logs))


@pytest.mark.parametrize(("end", "status"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_every_group_rebalances_and_nothing_stays_behind(tmp_path, end, status):
    command = [sys.executable, "-m", "jobs.cli", "lab", "--seed", "7"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    lab = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: {plan.group_id for plan, _ in CHURN.groups} == stable_groups(tmp_path))
        family = descendants(lab.pid)
        assert len(family) > len(CHURN.groups)
        lab.send_signal(end)
        assert status == lab.wait(120)
        wait_until(lambda: not family & parents().keys())
    finally:
        lab.kill()
        printed = lab.communicate()[0]
    assert re.search(r"bootstrap servers 127\.0\.0\.1:\d+, broker log ", printed)
