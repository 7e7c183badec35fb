"""A lock for file systems without locks, such as volumes of Databricks: a file that its holder rewrites regularly.

A process that wants the lock watches the file, so the clocks of two machines are never compared. Two processes that
start at the same instant may both write the file; the last one has the lock, and the other one ends.
"""

from __future__ import annotations

import _thread
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jobs.config.terminal import warn

BEAT_S = 4.0
"""Seconds between two writes of the holder."""

STALE_S = 20.0
"""Seconds without a write after which the holder counts as ended, and after which a holder that cannot write ends."""

SETTLE_S = 3.0
"""Seconds after which the first write is read again. A write reaches other machines sooner."""


def end_process(sentence: str) -> None:
    """Print the sentence and end this process, as Ctrl-C does."""
    warn(sentence)
    _thread.interrupt_main()


@dataclass(slots=True, kw_only=True)
class Lease:
    """The lock at `path`, until it is closed or the process ends. If it is lost, `on_lost` gets a sentence."""

    path: Path
    on_lost: Callable[[str], None] = end_process
    beat_s: float = BEAT_S
    stale_s: float = STALE_S
    settle_s: float = SETTLE_S
    _id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _beats: int = 0
    _written_at: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def take(self) -> Self:
        """Take the lock and keep it. Wait while a holder may still exist.

        Raises:
            BlockingIOError: another process holds the lock.
        """
        self._wait_for_holder()
        self._write()
        time.sleep(self.settle_s)
        if _read(self.path).get("id") != self._id:
            raise BlockingIOError
        threading.Thread(target=self._keep, daemon=True, name="lease").start()
        return self

    def close(self) -> None:
        """Give the lock up."""
        if not self._over.is_set():
            self._over.set()
            if _read(self.path).get("id") == self._id:
                self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_for_holder(self) -> None:
        first, until = _read(self.path), time.monotonic() + self.stale_s
        if first:
            warn(f"Waiting up to {self.stale_s:.0f} s, because {first.get('holder')} may still do this work.")
        while first and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, self.beat_s / 2))
            now = _read(self.path)
            if not now:
                return
            if now != first:
                raise BlockingIOError

    def _keep(self) -> None:
        while not self._over.wait(self.beat_s):
            other = _read(self.path)
            if other and other["id"] != self._id:
                self._over.set()
                self.on_lost(f"Ending, because {other.get('holder')} now does this work ({self.path}).")
                return
            try:
                self._write()
            except OSError as error:
                if time.monotonic() - self._written_at > self.stale_s:
                    self._over.set()
                    self.on_lost(f"Ending, because {self.path} cannot be written: {error.strerror}.")
                    return

    def _write(self) -> None:
        self._beats += 1
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        new = self.path.with_name(f"{self.path.name}.{self._id}")
        new.write_text(json.dumps({"id": self._id, "holder": holder, "beat": self._beats}), encoding="utf-8")
        new.replace(self.path)
        self._written_at = time.monotonic()


def holder(path: Path) -> str:
    """Return the holder of the lease at `path` as text."""
    return str(_read(path).get("holder", "another process"))


def _read(path: Path) -> dict[str, Any]:
    """Return the content of a lease, or an empty one if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "id" in found else {}
