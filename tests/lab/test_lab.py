"""The lab as users start it: its groups churn within seconds, and it leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.lab.scenarios import CHURN
from jobs.processes.ports import free_ports
from testing.waiting import wait_until

ROOT = Path(__file__).parents[2]


def parents() -> dict[int, int]:
    """Return the parent of each living process."""
    listing = subprocess.run(["ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listing.splitlines()]
    return {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}


def descendants(pid: int) -> set[int]:
    children = {child for child, parent in parents().items() if parent == pid}
    return children.union(*map(descendants, children))


def stable_groups(folder: Path) -> set[str]:
    logs = "".join(log.read_text() for log in folder.rglob("server.log"))
    return set(re.findall(r"Stabilized group (\S+) generation", logs))


@pytest.mark.parametrize(
    ("end", "status", "is_placed"), [(signal.SIGINT, 0, True), (signal.SIGKILL, -signal.SIGKILL, False)]
)
def test_every_group_rebalances_and_nothing_stays_behind(tmp_path, end, status, is_placed):
    """At a chosen address in a folder that stays, or at a free one in a temporary folder."""
    command = [sys.executable, "-m", "jobs.cli", "lab", "--seed", "7"]
    (port,) = free_ports(1)
    if is_placed:
        command += ["--listen", f"127.0.0.1:{port}", "--directory", str(tmp_path / "kept")]
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
    address = port if is_placed else r"\d+"
    assert re.search(rf"bootstrap servers 127\.0\.0\.1:{address}, broker log ", printed)
    assert is_placed == (tmp_path / "kept" / "data").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--listen", "127.0.0.1:{taken}"], "the port is in use, or the address is not one of this machine"),
        (["--listen", "203.0.113.1:9092"], "the port is in use, or the address is not one of this machine"),
        (["--listen", "9092"], "--listen must be HOST:PORT"),
        (["--directory", "/proc/lab"], "The folder /proc/lab cannot be created"),
    ],
)
def test_a_place_that_cannot_be_used_is_one_sentence(options, sentence, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert 2 == main(["lab", *(option.format(taken=port) for option in options)])
    assert sentence in capsys.readouterr().err
