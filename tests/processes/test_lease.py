"""The lock of a job where the file system has no locks: one holder, also after kills, pauses and starts at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.config.errors import UserError
from jobs.processes.lease import Lease, LeaseFile
from jobs.processes.process_lock import acquire
from testing.waiting import at_once, wait_until
from testing.warehouses import volume
from testing.warehouses.volume import refuse_in

QUICK = {"beat_s": 0.05, "stale_s": 0.6}

HOLDING = """
import sys, time
from pathlib import Path
from jobs.processes import lease
from jobs.processes.process_lock import acquire
from functools import partial
from jobs.processes import process_lock
process_lock.Lease = partial(lease.Lease, beat_s=0.1, stale_s=1.5)
process_lock.LeaseFile = partial(lease.LeaseFile, settle_s=0.3)
with acquire(Path(sys.argv[1]), "notify"):
    print("held", flush=True)
    while True:
        time.sleep(0.05)
"""


def holding(warehouse: Path) -> subprocess.Popen[str]:
    command = [sys.executable, volume.__file__, sys.executable, "-c", HOLDING, str(warehouse)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lease(path: Path, lost: list[str] | None = None, *, settle_s: float = 0.2, **more: float) -> Lease:
    place = LeaseFile(path, settle_s)
    return Lease(place=place, on_lost=(lost if lost is not None else []).append, **(QUICK | more))


def test_a_second_one_is_refused_until_the_first_one_is_closed(tmp_path) -> None:
    path = tmp_path / "held"
    with lease(path).take(), pytest.raises(BlockingIOError):
        lease(path).take()
    lease(path).take().close()
    assert [] == list(tmp_path.iterdir())


def test_a_holder_that_ended_without_closing_is_replaced(tmp_path) -> None:
    path = tmp_path / "held"
    path.write_text('{"id": "gone", "holder": "process 1 on elsewhere", "beat": 7}')
    began = time.monotonic()
    lease(path).take().close()
    assert time.monotonic() - began >= QUICK["stale_s"]


def test_a_file_that_is_no_lease_is_replaced_at_once(tmp_path) -> None:
    path = tmp_path / "held"
    path.write_text('{"id"')
    lease(path, stale_s=1_000).take().close()


def test_of_many_who_start_at_the_same_instant_one_has_it(tmp_path) -> None:
    taken, refused = [], []

    def start() -> None:
        mine = lease(tmp_path / "held", settle_s=0.5)
        try:
            taken.append(mine.take())
        except BlockingIOError:
            refused.append(mine)

    at_once(8, start)
    assert (1, 7) == (len(taken), len(refused))
    taken[0].close()


def test_a_holder_that_was_paused_for_too_long_ends(tmp_path) -> None:
    lost: list[str] = []
    with lease(tmp_path / "held", lost).take():
        (tmp_path / "held").write_text('{"id": "other", "holder": "process 2 on elsewhere", "beat": 1}')
        wait_until(lambda: lost)
    assert ["Ending, because process 2 on elsewhere now does this work"] == [text.split(" (")[0] for text in lost]
    assert (tmp_path / "held").exists(), "the other one's lease is left alone"


def test_a_holder_that_cannot_write_for_too_long_ends(tmp_path) -> None:
    lost: list[str] = []
    folder = tmp_path / "folder"
    folder.mkdir()
    with lease(folder / "held", lost).take():
        folder.rename(tmp_path / "moved")
        wait_until(lambda: lost)
    assert "cannot be written: No such file or directory" in lost[0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux refuses system calls to a process")
def test_processes_on_a_volume_refuse_each_other_and_take_over_after_a_kill(tmp_path, monkeypatch) -> None:
    with holding(tmp_path) as first:
        assert first.stdout is not None
        assert "held\n" == first.stdout.readline()
        refuse_in(monkeypatch)
        with pytest.raises(UserError, match=rf"^Process {first.pid} on .* already does the work of `notify`"):
            acquire(tmp_path, "notify")
        first.send_signal(signal.SIGKILL)
    with holding(tmp_path) as second:
        assert second.stdout is not None
        assert "held\n" == second.stdout.readline(), "it waited until the first one counted as ended"
        second.send_signal(signal.SIGINT)
        second.wait()
    assert not list(tmp_path.rglob("*.lease")), "closed at the end"
