"""A warehouse in an object store: its checkpoints and states are in one object, and in a folder while a job runs.

Before each batch of a stream writes rows, the folder is stored. So the store knows the offsets of every batch that may
have rows, and a process that continues on another machine repeats the last batch with the same offsets and the same
number, which Delta then skips where it was written. Other states may be older than the tables, as after a crash.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dashboards.lake.address import ObjectStore, as_written
from jobs.config.errors import UserError
from jobs.config.places import place_of
from jobs.config.settings import Settings
from jobs.processes.lease import Lease, end_process, holder
from jobs.spark.s3_checks import refuse_unreachable
from jobs.spark.session_provider import Provider, provider
from jobs.states.folder_archive import NoArchiveError, packed, unpack
from jobs.states.kept import saved_by
from jobs.states.stored_lease import StoredLease
from jobs.states.stored_object import ChangedError, StoredObject
from jobs.tables.location import bind

STATES = "_states/states.tar.gz"
HELD = "_states/held.json"
PREFIX = "regroup-states-"
ELSEWHERE = {
    Provider.DATABRICKS: "name a folder in a volume with --warehouse, and the schema or the address with --tables",
    Provider.CONNECT: "name a folder that this machine and the server have with --warehouse, and the address with "
    "--tables",
}
"""Providers whose streams do not run in this process, so that nothing can be stored before they write."""


@dataclass(slots=True, kw_only=True)
class StoredStates:
    """The states of a warehouse in `object`, and the folder with the copy that this process uses."""

    folder: Path
    object: StoredObject
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stored: bytes | None = None
    _is_lost: bool = False

    def give_up(self) -> None:
        """Store nothing more, because another process has the warehouse."""
        self._is_lost = True

    def load(self) -> None:
        """Write the states into the folder.

        Raises:
            UserError: they cannot be read.
        """
        content = self.object.read()
        if content is None:
            return
        try:
            unpack(content, self.folder)
        except NoArchiveError as error:
            raise UserError(
                f"The states in {self.object} cannot be read ({error}): remove that object. `ingest` then continues "
                "where bronze ends, and `build` reads bronze again."
            ) from error
        self._stored = content

    def save(self) -> None:
        """Store the states, if they changed.

        Raises:
            UserError: they cannot be stored, or another process stored its own.
        """
        with self._lock:
            if self._is_lost:
                raise self._refusal()
            content = packed(self.folder)
            if content == self._stored:
                return
            try:
                self.object.write(content)
            except ChangedError:
                self._is_lost = True
                raise self._refusal() from None
            self._stored = content

    def _refusal(self) -> UserError:
        return UserError(
            f"Another process wrote {self.object} meanwhile: start this job again when the other one has ended. "
            "Nothing is lost."
        )


@contextmanager
def in_a_folder(settings: Settings) -> Iterator[Settings]:
    """Yield the settings with a folder that has the states of the warehouse's address, reserved for this process.

    Raises:
        UserError: the store cannot be used, another process writes the warehouse, or the settings name other tables.
    """
    store, there = settings.address, settings.warehouse_text
    assert store is not None
    if settings.tables and settings.tables.rstrip("/") != there:
        raise UserError(
            f"The warehouse {there} has its tables there, but the setting tables says {settings.tables}: leave that "
            "setting out, or name a folder for checkpoints and states with --warehouse."
        )
    found = provider()
    if found in ELSEWHERE:
        raise UserError(f"With {found}, a warehouse cannot be an address such as {there}: {ELSEWHERE[found]}.")
    refuse_unreachable(there)
    with TemporaryDirectory(prefix=PREFIX) as name, ExitStack() as stack:
        folder = Path(name).resolve()
        states = StoredStates(folder=folder, object=StoredObject(store, STATES))
        stack.enter_context(_only_writer(store, states.give_up))
        states.load()
        bind(folder, there)
        with saved_by(folder, states.save, str(states.object)), _named_by_address(folder, there):
            try:
                yield replace(settings, warehouse=folder, tables=there)
            except BaseException:
                with suppress(UserError):
                    states.save()
                raise
            states.save()


@contextmanager
def copied(there: Path) -> Iterator[Path]:
    """Yield the folder of a warehouse that is only read: itself, or a copy of the states at an address.

    Raises:
        UserError: the address is not valid, or the states cannot be read.
    """
    store = place_of(there)
    if isinstance(store, Path):
        yield there.absolute()
        return
    with TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name).resolve()
        StoredStates(folder=folder, object=StoredObject(store, STATES)).load()
        bind(folder, as_written(there))
        with _named_by_address(folder, as_written(there)):
            yield folder


def writer(store: ObjectStore) -> str | None:
    """Return which process has the warehouse at this address; None if none has.

    Raises:
        UserError: the store cannot be used.
    """
    place = StoredLease(StoredObject(store, HELD))
    return holder(place) if place.place.read() is not None else None


@contextmanager
def _only_writer(store: ObjectStore, give_up: Callable[[], None]) -> Iterator[None]:
    place = StoredLease(StoredObject(store, HELD))

    def end(sentence: str) -> None:
        give_up()
        end_process(sentence)

    try:
        held = Lease(place=place, on_lost=end).take()
    except BlockingIOError:
        raise UserError(
            f"{holder(place)} writes the warehouse {store}, where only one process may write at a time: "
            "let it end, or stop it, and run jobs one after the other, with --once."
        ) from None
    with held:
        yield


@contextmanager
def _named_by_address(folder: Path, there: str) -> Iterator[None]:
    """Let sentences name the address instead of the folder, which no user knows."""
    try:
        yield
    except UserError as error:
        raise type(error)(str(error).replace(str(folder), there)) from error.__cause__
