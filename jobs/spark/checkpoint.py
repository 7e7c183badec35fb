"""A stream's progress and the tables it fills, kept from drifting apart."""

from __future__ import annotations

import atexit
import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import deltalake

from jobs.config.errors import UserError
from jobs.config.terminal import say
from jobs.processes.process_lock import lock_file
from jobs.tables.delta_io import table_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.tables import Table


_held: dict[Path, TextIO] = {}
"""Locks of this process, by their files."""


def start_over_unless(path: Path, tables: Sequence[str]) -> None:
    """Forget the progress of a stream that cannot go on: one that followed another number of tables, as of an earlier
    Regroup, or whose tables' logs no longer reach back to where it stopped. For streams that may be told again what
    they were told before.
    """
    batches = [each for each in path.glob("offsets/*") if each.name.isdigit()]
    if not batches:
        return
    # Spark writes a line with its format's version, one with its own settings, and one for each table.
    _, _, *stood = max(batches, key=lambda each: int(each.name)).read_text(encoding="utf-8").splitlines()
    if len(stood) != len(tables):
        why = "an earlier Regroup read less of it"
    elif any(_is_gone(told, table) for told, table in zip(stood, tables, strict=True)):
        why = "it was stopped for longer than the tables' logs reach back"
    else:
        return
    say(f"{path.name}: bronze is looked through from its beginning, since {why}.")
    shutil.rmtree(path)


def _is_gone(told: str, table: str) -> bool:
    """Whether the table's log no longer has the version at which a stream stood."""
    try:
        version = int(json.loads(told)["reservoirVersion"])
    except (ValueError, KeyError, TypeError):
        return False
    commits = [int(each.stem) for each in Path(table, "_delta_log").glob("*.json") if each.stem.isdigit()]
    return version < min(commits, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Progress of one stream in a folder, beside it a note of the tables it fills and of its name towards them.

    Delta skips a write whose (app id, batch number) it knows. An app id that outlived its checkpoint would therefore
    lose data silently: it is made anew whenever batch numbers begin anew.
    """

    path: Path
    warehouse: Path
    tables: Sequence[Table]

    @property
    def has_progress(self) -> bool:
        return any((self.path / "offsets").glob("[0-9]*"))

    def hold(self) -> None:
        """Keep other processes from the stream until this one ends, however it does.

        Two that begin at the same time would each make an app id of their own, and write the first batch twice.

        Raises:
            UserError: another process has the stream.
        """
        lock = self.path.with_name(f"{self.path.name}.lock")
        if lock in _held:
            return
        try:
            _held[lock] = lock_file(lock)
            atexit.register(_held[lock].close)
        except BlockingIOError:
            raise UserError(
                f"Another process already writes what the checkpoint {self.path} is about: stop that one first."
            ) from None

    def refuse_other_tables(self) -> None:
        """Call before tables are created.

        Raises:
            UserError: a table that the progress is about is gone or another one, or the note is.
        """
        if not self.has_progress:
            return
        try:
            known = json.loads(self._note.read_text(encoding="utf-8"))["tables"]
        except (OSError, ValueError, KeyError):
            raise UserError(
                f"The checkpoint {self.path} is incomplete: delete that folder, and reading goes on where bronze ends."
            ) from None
        for name, table_id in self._table_ids().items():
            if known.get(name) != table_id:
                raise UserError(
                    f"The checkpoint {self.path} remembers what it wrote to the table {name}, but that table in "
                    f"{self.warehouse} is gone or another one: restore the table, or delete the checkpoint to read "
                    "again what Kafka still has."
                )

    def app_id(self) -> str:
        """The stream's name in Delta's transactions; without progress, a new one on a cleared folder."""
        if not self.has_progress:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path.mkdir(parents=True)
            note = {"app_id": uuid.uuid4().hex, "tables": self._table_ids()}
            self._note.write_text(json.dumps(note), encoding="utf-8")
        return str(json.loads(self._note.read_text(encoding="utf-8"))["app_id"])

    @property
    def _note(self) -> Path:
        return self.path / "regroup.json"

    def _table_ids(self) -> dict[str, str | None]:
        return {table.name: _table_id(table_path(self.warehouse, table)) for table in self.tables}


def _table_id(path: str) -> str | None:
    return str(deltalake.DeltaTable(path).metadata().id) if deltalake.DeltaTable.is_deltatable(path) else None
