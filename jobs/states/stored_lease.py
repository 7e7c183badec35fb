"""The lease of a warehouse in an object store, where only one process may write at a time."""

from __future__ import annotations

import errno
import json
from contextlib import suppress
from dataclasses import dataclass

from jobs.config.errors import UserError
from jobs.processes.lease import Note, note_of
from jobs.states.stored_object import ChangedError, StoredObject


@dataclass(slots=True)
class StoredLease:
    """The note of a lease in an object, which the store protects against a second writer."""

    place: StoredObject
    settle_s: float = 0.0

    def __str__(self) -> str:
        return str(self.place)

    def read(self) -> Note:
        try:
            return note_of(self.place.read() or b"")
        except UserError:
            return {}

    def write(self, note: Note) -> None:
        try:
            self.place.write(json.dumps(note).encode())
        except ChangedError as error:
            raise FileExistsError(errno.EEXIST, "another process wrote it") from error

    def remove(self) -> None:
        # A note that cannot be removed is ignored after a while.
        with suppress(UserError):
            self.place.remove()
