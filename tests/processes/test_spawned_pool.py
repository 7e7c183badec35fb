"""A pool leaves nothing behind and prints nothing when its process ends, or Ctrl-C comes, in the middle of the work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.processes.spawned_pool import spawned_pool
from testing.waiting import wait_until

ENDED = """
import os, sys, threading, time
from jobs.processes.spawned_pool import spawned_pool

def work():
    with spawned_pool(1) as pool:
        pool.submit(os.open, sys.argv[1], os.O_CREAT)
        pool.submit(time.sleep, 600).result()

if __name__ == "__main__":
    threading.Thread(target=work).start()
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.05)
    threads = os.listdir("/proc/self/task")
    print(*(child for each in threads for child in open(f"/proc/self/task/{each}/children").read().split()))
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_that_ends_at_once_leaves_no_process_and_no_line(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ENDED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program, tmp_path / "started"], check=True, capture_output=True, text=True, timeout=60
    )
    children = done.stdout.split()
    assert len(children) == 2
    wait_until(lambda: not any(Path("/proc", child).exists() for child in children))
    assert done.stderr == ""


INTERRUPTED = """
import threading, time
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from jobs.processes.spawned_pool import spawned_pool

ended = threading.Event()

def work():
    # Ctrl-C ends the pool's process as well.
    with suppress(BrokenProcessPool), spawned_pool(1) as pool:
        pool.submit(time.sleep, 600).result()
    ended.set()

if __name__ == "__main__":
    try:
        threading.Thread(target=work).start()
        # In short waits, because Python keeps waiting if a signal arrives just before a wait begins.
        while not ended.wait(0.1):
            pass
    except KeyboardInterrupt:
        ended.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_ctrl_c_while_a_process_of_a_thread_s_pool_starts_prints_no_line(tmp_path) -> None:
    """As in `up`, where a stream's thread starts the pool."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED, encoding="utf-8")
    with subprocess.Popen([sys.executable, program], process_group=0, stderr=subprocess.PIPE, text=True) as run:
        wait_until(lambda: any(b"spawn_main" in command for command in commands(run.pid)))
        os.killpg(run.pid, signal.SIGINT)
        assert (0, "") == (run.wait(60), run.communicate()[1])


def commands(group: int) -> list[bytes]:
    """Return the command lines of the processes of a group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(folder.name)) == group:
                found.append((folder / "cmdline").read_bytes())
        except (ProcessLookupError, FileNotFoundError):
            pass
    return found


def test_a_block_that_fails_ends_its_own_processes_and_no_others(tmp_path) -> None:
    began = tmp_path / "began"

    def fail() -> None:
        with spawned_pool(1) as failing:
            failing.submit(os.open, began, os.O_CREAT)
            failing.submit(time.sleep, 600)
            wait_until(began.exists)
            raise KeyError

    with spawned_pool(1) as other:
        kept = other.submit(os.getpid).result()
        with pytest.raises(KeyError):
            fail()
        assert other.submit(os.getpid).result() == kept
