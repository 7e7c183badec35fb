"""Regroup's jobs in separate processes, watched from outside and killed with all their children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from jobs.config.clusters import Cluster
from testing.waiting import wait_until

ROOT = Path(__file__).parents[2]
LONGEST_S = 300.0
ONCE = ("ingest", "build", "analyze", "maintain")
"""Commands that end only if `--once` is given."""


class Job:
    """`regroup COMMAND` on one warehouse, in a separate process group that includes its JVM and workers.

    It has `--once`, unless it always ends. `within` comes before the command line, `more` are further options;
    `is_following`: it does not end after the existing data. `modules` is a folder whose modules every Python of the job
    finds first.
    """

    def __init__(
        self,
        command: str,
        warehouse: Path,
        cluster: Cluster,
        *,
        within: Sequence[str] = (),
        more: Sequence[str] = (),
        is_following: bool = False,
        modules: Path | None = None,
    ) -> None:
        warehouse.parent.mkdir(parents=True, exist_ok=True)
        config = warehouse.parent / "regroup.toml"
        config.write_text(
            f'[clusters.{cluster.name}]\nbootstrap_servers = "{cluster.bootstrap_servers}"\n'
            f"max_offsets_per_trigger = {cluster.max_offsets_per_trigger}\n"
        )
        self.printed = warehouse.parent / f"{command}.log"
        with self.printed.open("ab") as printed:
            until = ("--trigger-seconds", "1") if is_following else ("--once",) if command in ONCE else ()
            program = (*within, sys.executable, "-m", "jobs.cli")
            self.process = subprocess.Popen(
                [*program, command, *until, *more, "--config", config, "--warehouse", warehouse],
                stdout=printed,
                stderr=printed,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (modules or ROOT, ROOT)))},
                cwd=ROOT,
            )

    def until(self, holds: Callable[[], object], *, in_steps: bool = False) -> bool:
        """Wait for a condition; return False if the job ended before it held.

        `in_steps` lets the job run a millisecond at a time, and checks the condition while the job is stopped; it stays
        stopped when the condition holds. Otherwise a condition that holds for less time than a check takes would be
        missed.
        """
        deadline = time.monotonic() + LONGEST_S
        while True:
            if in_steps:
                self._tell(signal.SIGSTOP)
            if holds():
                return True
            if in_steps:
                self._tell(signal.SIGCONT)
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < deadline, f"neither done nor there within {LONGEST_S} s: {self.tail()}"
            time.sleep(0.001)

    def _tell(self, number: signal.Signals) -> None:
        """Send a signal to the job and its JVM at the same time."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Kill the job and all its children, as when the machine loses power."""
        # The group is killed first: while the other processes are searched for, a batch could end.
        self._tell(signal.SIGKILL)
        # Spark's Python workers are in a separate process group of the same session.
        for pid in _session(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def kill_those(self, program: bytes) -> int:
        """Send SIGKILL to every process of the job with the program in its command line; return their number."""
        found = [pid for pid in _session(self.process.pid) if program in _command(pid)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return len(found)

    def end(self) -> int:
        """Wait until the job and the processes that it started have ended; return its exit code."""
        try:
            code = self.process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not end within {LONGEST_S} s: {self.tail()}") from None
        wait_until(lambda: not _session(self.process.pid), LONGEST_S)
        return code

    def text(self) -> str:
        return self.printed.read_text(encoding="utf-8", errors="replace")

    def tail(self) -> str:
        return self.text()[-3_000:]

    def traces(self) -> list[str]:
        """Return the printed lines that begin or belong to a trace of Python or Java."""
        return [line for line in self.text().splitlines() if line.startswith(("Traceback", "\tat ", "Caused by"))]


def finished(
    command: str, warehouse: Path, cluster: Cluster, *, attempts: int = 3, within: Sequence[str] = ()
) -> float:
    """Start the job again until it succeeds; return the seconds of the successful attempt."""
    for _ in range(attempts):
        began = time.monotonic()
        job = Job(command, warehouse, cluster, within=within)
        if job.end() == 0:
            return time.monotonic() - began
    raise AssertionError(job.tail())


def _session(leader: int) -> list[int]:
    """Return the processes of the session, the leader first, so that it cannot start others."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(ProcessLookupError):
            if os.getsid(int(path.name)) == leader:
                found.append(int(path.name))
    return sorted(found, key=lambda pid: pid != leader)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
