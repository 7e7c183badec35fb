"""An S3 server on loopback, and a process that runs commands of Regroup on it, one after the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobs.spark.spark import FEW_ROWS
from testing.object_store import S3Server, object_store
from tests.conftest import INTERPRETED

ROOT = Path(__file__).parents[3]
BUCKET = "warehouses"
ADDRESS = f"s3a://{BUCKET}/of/jobs"

PROGRAM = """
import json, os, sys
from jobs.cli import main
for line in sys.stdin:
    code = main(json.loads(line))
    sys.stderr.flush()
    print(f"ended {code}", flush=True)
os._exit(0)  # as `program` ends
"""


class Commands:
    """A process that runs commands in one session of Spark. `printed` is what they have printed so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.printed = ""

    def begin(self, *words: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{json.dumps(words)}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """Kill the process; its JVM ends a moment later."""
        self._process.kill()
        self._process.wait()

    def run(self, *words: str) -> int:
        """Run the command, and return its exit code."""
        self.begin(*words)
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("ended "):
                return int(line.split()[1])
            self.printed += line
        raise AssertionError(self.printed[-5000:])


@contextmanager
def commands(server: S3Server, folder: Path) -> Iterator[Commands]:
    """Run the process with the server's credentials. `folder` gets options of Spark for few rows."""
    folder.mkdir(parents=True)
    options = "\n".join(f"{name} {FEW_ROWS[name]}" for name in INTERPRETED)
    (folder / "spark-defaults.conf").write_text(options, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        cwd=folder,
        env=os.environ | dict(server.environment) | {"SPARK_CONF_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield Commands(process)
        finally:
            process.kill()


@contextmanager
def serving() -> Iterator[S3Server]:
    """Run a server whose credentials this process has in its environment."""
    with object_store() as running, pytest.MonkeyPatch.context() as patched:
        running.files.create_dir(BUCKET)
        for name, value in running.environment.items():
            patched.setenv(name, value)
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """A server for the tests of one module."""
    with serving() as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[S3Server]:
    """A server of one test alone."""
    with serving() as running:
        yield running
