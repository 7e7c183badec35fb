"""A lock for storage without locks, such as volumes of Databricks: a note that its holder rewrites regularly.

A process that wants the lock watches the note, so the clocks of two machines are never compared. In a file, two
processes that start at the same instant may both write the note; the last one has the lock, and the other one ends. An
object store (`jobs.states.stored_lease`) refuses the second one.
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
from typing import Any, Protocol, Self

from jobs.config.errors import UserError
from jobs.config.terminal import warn

BEAT_S = 4.0
"""Seconds between two writes of the holder."""

STALE_S = 20.0
"""Seconds without a write after which the holder counts as ended, and after which a holder that cannot write ends."""

SETTLE_S = 3.0
"""Seconds after which the first write to a file is read again. A write reaches other machines sooner."""

Note = dict[str, Any]
"""`id` and `holder` of a lease, and a number that each write increments."""


class LeasePlace(Protocol):
    """The place where the note of a lease is stored. `str` returns its name for a sentence."""

    settle_s: float
    """Seconds after which the first write is read again; 0 if a second writer is refused."""

    def read(self) -> Note:
        """Return the note, or an empty one if there is none or it cannot be read."""

    def write(self, note: Note) -> None:
        """Write the note.

        Raises:
            FileExistsError: another process wrote it since it was read, if the place can tell.
            OSError, UserError: it cannot be written.
        """

    def remove(self) -> None:
        """Remove the note."""


@dataclass(slots=True)
class LeaseFile:
    """A note in a file, replaced as a whole."""

    path: Path
    settle_s: float = SETTLE_S

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> Note:
        try:
            return note_of(self.path.read_bytes())
        except OSError:
            return {}

    def write(self, note: Note) -> None:
        new = self.path.with_name(f"{self.path.name}.{note['id']}")
        new.write_text(json.dumps(note), encoding="utf-8")
        new.replace(self.path)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def note_of(content: bytes) -> Note:
    """Return the note in these bytes, or an empty one."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and "id" in found else {}


def end_process(sentence: str) -> None:
    """Print the sentence and end this process, as Ctrl-C does."""
    warn(sentence)
    _thread.interrupt_main()


@dataclass(slots=True, kw_only=True)
class Lease:
    """The lock at `place`, until it is closed or the process ends. If it is lost, `on_lost` gets a sentence."""

    place: LeasePlace
    on_lost: Callable[[str], None] = end_process
    beat_s: float = BEAT_S
    stale_s: float = STALE_S
    _id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _beats: int = 0
    _written_at: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Self:
        """Take the lock and keep it. Wait while a holder may still exist.

        Raises:
            BlockingIOError: another process holds the lock.
            OSError, UserError: the note cannot be written.
        """
        self._wait_for_holder()
        try:
            self._write()
        except FileExistsError:
            raise BlockingIOError from None
        time.sleep(self.place.settle_s)
        if self.place.settle_s and self.place.read().get("id") != self._id:
            raise BlockingIOError
        threading.Thread(target=self._keep, daemon=True, name="lease").start()
        return self

    def close(self) -> None:
        """Release the lock."""
        # Not while a beat is written, which would leave a note without a holder.
        with self._writing:
            if not self._over.is_set():
                self._over.set()
                if self.place.read().get("id") == self._id:
                    self.place.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_for_holder(self) -> None:
        first, until = self.place.read(), time.monotonic() + self.stale_s
        if first:
            warn(f"Waiting up to {self.stale_s:.0f} s, because {first.get('holder')} may still do this work.")
        while first and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, self.beat_s / 2))
            now = self.place.read()
            if not now:
                return
            if now != first:
                raise BlockingIOError

    def _keep(self) -> None:
        while not self._over.wait(self.beat_s):
            with self._writing:
                why = None if self._over.is_set() else self._beat()
                if why is not None:
                    self._over.set()
            if why is not None:
                self.on_lost(why)

    def _beat(self) -> str | None:
        """Write the note again; return why the lock is lost, if it is."""
        other = self.place.read()
        if other and other["id"] != self._id:
            return f"Ending, because {other.get('holder')} now does this work ({self.place})."
        try:
            self._write()
        except (OSError, UserError) as error:
            if time.monotonic() - self._written_at > self.stale_s:
                why = error.strerror if isinstance(error, OSError) else error
                return f"Ending, because {self.place} cannot be written: {why}".rstrip(".") + "."
        return None

    def _write(self) -> None:
        self._beats += 1
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        self.place.write({"id": self._id, "holder": holder, "beat": self._beats})
        self._written_at = time.monotonic()


def holder(place: LeasePlace) -> str:
    """Return the holder of a lease, to begin a sentence with."""
    text = str(place.read().get("holder", "another process"))
    return text[:1].upper() + text[1:]
