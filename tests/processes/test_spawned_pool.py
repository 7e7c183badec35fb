"""A pool leaves nothing behind and prints nothing when its process ends in the middle of the work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
