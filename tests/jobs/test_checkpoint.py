"""One process at a time has a stream."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from jobs.config.errors import UserError
from jobs.spark.checkpoint import Checkpoint
from testing.waiting import wait_until

HOLD = """
import sys, time
from pathlib import Path
from jobs.spark.checkpoint import Checkpoint
Checkpoint(path=Path(sys.argv[1]), warehouse=Path(), tables=()).acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_a_second_process_is_refused_until_the_first_is_dead(tmp_path) -> None:
    checkpoint = Checkpoint(path=tmp_path / "ingest" / "kafka" / "t", warehouse=tmp_path, tables=())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLD, str(checkpoint.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as other:
        assert other.stdout is not None
        assert b"held\n" == other.stdout.readline()
        with pytest.raises(UserError, match="Another process already runs the stream"):
            checkpoint.acquire()
        other.send_signal(signal.SIGKILL)
        other.wait()
    wait_until(lambda: checkpoint.acquire() is None)
    checkpoint.acquire()
