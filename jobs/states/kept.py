"""Stores the checkpoints and states of a warehouse whose folder is only a copy (`jobs.states.stored_states`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class _Kept(NamedTuple):
    save: Callable[[], None]
    place: str


_kept: dict[Path, _Kept] = {}
"""By folder: the function that stores it, and the object that it is stored in."""


def save_states(warehouse: Path) -> None:
    """Store the checkpoints and states of a warehouse in an object store. Call this before a batch writes rows.

    Raises:
        UserError: they cannot be stored, so the batch must not write.
    """
    if (kept := _kept.get(warehouse)) is not None:
        kept.save()


def as_stored(path: Path) -> str:
    """Return where a file of a warehouse's folder is after the command: its path, or its name in an object."""
    for folder, kept in _kept.items():
        if path.is_relative_to(folder):
            return f"{path.relative_to(folder)} in {kept.place}"
    return str(path)


@contextmanager
def saved_by(folder: Path, save: Callable[[], None], place: str) -> Iterator[None]:
    """Let `save` store this folder in the object `place` during the block."""
    _kept[folder] = _Kept(save, place)
    try:
        yield
    finally:
        del _kept[folder]
