"""The rows of a process in the table `job_runs`: for each job, its start, its heartbeats and its end.

No job depends on these rows. If they cannot be written, the process reports that once and continues. A killed process
writes no more rows, so the end of a run without a row for longer than `HEARTBEAT_MS` is unknown.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import NamedTuple, Self

from jobs.config.errors import ERROR_LENGTH, UserError, one_line, without_secrets, wrapped
from jobs.installation.build_info import version
from jobs.tables.tables import Tables
from schemas.operations import HEARTBEAT_MS, JOB_RUNS
from schemas.rows import JobRunRow
from schemas.states import JobOutcome
from schemas.visible import visible_text

FIRST_SECONDS = 5.0
"""Seconds until the warehouse is checked again if it does not exist yet. A job may create it."""


@dataclass(slots=True, kw_only=True)
class _Run:
    job: str
    run_id: str
    started_at: int
    part_of: str | None
    is_over: bool = False


class _Entry(NamedTuple):
    run: _Run
    outcome: JobOutcome = JobOutcome.RUNNING
    error: str | None = None


@dataclass(kw_only=True)
class Runs:
    """The run of `job` in this process, and of jobs that are parts of it. `secrets` are removed from error texts."""

    tables: Tables
    job: str
    say: Callable[[str], None]
    secrets: Sequence[str] = ()
    heartbeat_ms: int = HEARTBEAT_MS
    _runs: list[_Run] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _over: threading.Event = field(default_factory=threading.Event)
    _written_ms: int = 0
    _has_complained: bool = False
    _has_failed: bool = False

    def __enter__(self) -> Self:
        self.start(self.job)
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.end(JobOutcome.SUCCEEDED)
        elif isinstance(error, KeyboardInterrupt):
            self.end(JobOutcome.STOPPED)
        else:
            self.end(JobOutcome.FAILED, self._sentence(error))

    def start(self, *jobs: str) -> None:
        """Record the start of these jobs. All but `job` itself are parts of it."""
        began = _now_ms()
        with self._lock:
            new = [
                _Run(
                    job=job,
                    run_id=uuid.uuid4().hex,
                    started_at=began,
                    part_of=None if job == self.job else self.job,
                )
                for job in jobs
            ]
            self._runs += new
            self._write([_Entry(run) for run in new])

    def end(self, outcome: JobOutcome, error: str | None = None) -> None:
        """Record the end of `job`; parts that still run are recorded as stopped. Only the first call counts."""
        with self._lock:
            self._over.set()
            running = [run for run in self._runs if not run.is_over]
            for run in running:
                run.is_over = True
            self._write([_Entry(r, JobOutcome.STOPPED) if r.part_of else _Entry(r, outcome, error) for r in running])

    @contextmanager
    def failing(self, part: str) -> Iterator[None]:
        """Record an exception in this block as a failure of the part, and raise it. Later failures of others are
        consequences.
        """
        try:
            yield
        except Exception as error:
            self.failed(part, error)
            raise

    def failed(self, part: str, error: Exception) -> None:
        """Record the failure of a part, unless another part failed before."""
        with self._lock:
            failed = [run for run in self._runs if run.job == part and not run.is_over and not self._has_failed]
            self._has_failed = True
            for run in failed:
                run.is_over = True
            self._write([_Entry(run, JobOutcome.FAILED, self._sentence(error)) for run in failed])

    def again(self) -> None:
        """Record a new start of the failed part."""
        with self._lock:
            self._has_failed = False
            running = {run.job for run in self._runs if not run.is_over}
            self.start(*{run.job for run in self._runs if run.is_over} - running)

    @contextmanager
    def until_terminated(self) -> Iterator[None]:
        """Record a SIGTERM during the block before it ends the process."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def terminated(number: int, _: FrameType | None) -> None:
            self.end(JobOutcome.STOPPED)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            if os.getpid() == 1:
                # The first process of a container survives a signal that it does not handle.
                os._exit(128 + number)

        before = signal.signal(signal.SIGTERM, terminated)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _beat(self) -> None:
        while not self._over.wait(self.heartbeat_ms / 1000 if self._written_ms else FIRST_SECONDS):
            with self._lock:
                self._write([_Entry(run) for run in self._runs if not run.is_over])

    def _write(self, entries: Sequence[_Entry]) -> None:
        # A missing warehouse is not created, because its name may be a mistake.
        if not entries or not self.tables.warehouse.is_dir():
            return
        now = max(_now_ms(), self._written_ms + 1)
        try:
            self.tables.append(JOB_RUNS, [_row(entry, now) for entry in entries])
        except Exception as failure:  # noqa: BLE001 - a full disk, a read-only folder, a broken log: all the same here
            if not self._has_complained:
                self._has_complained = True
                self.say(f"The runs of {self.job} are not recorded in {JOB_RUNS.name}: {one_line(failure)}")
        else:
            self._written_ms = now

    def _sentence(self, error: BaseException) -> str:
        if isinstance(error, UserError):
            text = str(error)
        else:
            text = wrapped(error) or f"{type(error).__name__}: {error}".rstrip(": ")
        text = without_secrets(text, self.secrets)
        return visible_text(text.split("\n", 1)[0][:ERROR_LENGTH])


def _row(entry: _Entry, told_at: int) -> JobRunRow:
    run, outcome, error = entry
    return {
        "job": run.job,
        "run_id": run.run_id,
        "told_at": told_at,
        "started_at": run.started_at,
        "ended_at": None if outcome is JobOutcome.RUNNING else told_at,
        "outcome": outcome.value,
        "error": error,
        "part_of": run.part_of,
        "regroup_version": version(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
