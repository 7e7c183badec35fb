"""Regroup's jobs as processes of their own, watched from outside and killed with all their children."""

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
"""Commands that end only with `--once`."""


class Job:
    """`regroup COMMAND` on one warehouse, in a process group of its own, of which JVM and workers are part.

    It has `--once`, unless it always ends. `within` comes before the command line, `more` are further options; `is_following`: it does not end with what is
    there now. `modules` is a folder whose modules every Python of the job finds first.
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
        """Wait for a condition; False where the job ended before it held.

        `in_steps` lets the job run a millisecond at a time and looks while it stands still, where it is left: what
        lasts shorter than a look would be missed.
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
        """To the job and its JVM at one instant."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """As when the machine loses power."""
        # To look for the others takes as long as a batch to end.
        self._tell(signal.SIGKILL)
        # Spark's Python workers are a process group apart, in the same session.
        for pid in _session(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def kill_those(self, program: bytes) -> int:
        """SIGKILL to every process of the job in whose command line the program is; how many there were."""
        found = [pid for pid in _session(self.process.pid) if program in _command(pid)]
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        return len(found)

    def end(self) -> int:
        """Let it come to its end, and what it started; its exit code."""
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


def finished(
    command: str, warehouse: Path, cluster: Cluster, *, attempts: int = 3, within: Sequence[str] = ()
) -> float:
    """Start it again until it is done; seconds of the attempt that was."""
    for _ in range(attempts):
        began = time.monotonic()
        job = Job(command, warehouse, cluster, within=within)
        if job.end() == 0:
            return time.monotonic() - began
    raise AssertionError(job.tail())


def _session(leader: int) -> list[int]:
    """Leader first, so that nobody is left to start others."""
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
