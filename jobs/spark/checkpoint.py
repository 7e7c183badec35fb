"""A stream's progress and the tables that it fills, and checks that they belong together."""

from __future__ import annotations

import atexit
import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.config.errors import UserError
from jobs.config.terminal import say
from jobs.processes.process_lock import ProcessLock, lock_file
from jobs.spark.session_provider import Provider, provider
from jobs.tables.disk.durability import write_whole
from jobs.tables.disk.torn import repair_progress
from jobs.tables.table_facts import commits_after, oldest_version, table_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from schemas.tables import Table


_locks: dict[Path, ProcessLock] = {}
"""The locks that this process holds, by lock file."""


def place(path: Path) -> str:
    """Return the folder of a checkpoint for Spark. A cluster's default file system may be another one, such as HDFS."""
    return f"file://{path}" if provider() in (Provider.SUBMIT, Provider.CONTEXT) else str(path)


def repair(path: Path) -> None:
    """Delete what is torn of a stream's progress, and say so."""
    for sentence in repair_progress(path):
        say(sentence)


def start_over_unless(path: Path, warehouse: Path, tables: Sequence[Table]) -> None:
    """Delete the progress of a stream over `tables` that cannot continue.

    It cannot if it followed another number of tables, as in an earlier version of Regroup, or if the tables' logs no
    longer reach back to its position. Only for streams that may process rows again.
    """
    repair(path)
    batch = _last_batch(path, "offsets")
    if batch is None:
        return
    offsets = _offsets(path, batch)
    if len(offsets) != len(tables):
        why = "an earlier version of Regroup read fewer of its tables"
    elif any(_is_gone(offset, warehouse, table) for offset, table in zip(offsets, tables, strict=True)):
        why = "the tables' logs no longer reach back to its position"
    else:
        return
    say(f"{path.name}: bronze is read from its beginning, because {why}.")
    shutil.rmtree(path)


def start_over_if_behind(checkpoints: Path, warehouse: Path, tables: Sequence[Table]) -> None:
    """Delete the progress of every stream that has not read all rows of the tables, before old files are removed.

    Such a stream may need files that no current version has. Streams that follow tables may process rows again.
    """
    followed_ids = {found: table for table in tables if (found := table_id(warehouse, table))}
    for path in sorted(each.parent for each in checkpoints.glob("*/offsets")):
        batch = _last_batch(path, "offsets")
        if batch is None:
            continue
        positions = [json.loads(offset) for offset in _offsets(path, batch) if '"reservoirId"' in offset]
        followed = [each for each in positions if each["reservoirId"] in followed_ids]
        is_whole = _last_batch(path, "commits") == batch
        is_at_end = (_is_at_end(each, warehouse, followed_ids[each["reservoirId"]]) for each in followed)
        if followed and not (is_whole and all(is_at_end)):
            say(f"{path.name}: bronze will be read from its beginning, because files that it did not read are removed.")
            shutil.rmtree(path)


def _is_at_end(position: Mapping[str, Any], warehouse: Path, table: Table) -> bool:
    """Return whether no commit from the position on added rows. Other commits have only rows of earlier ones."""
    _, later = commits_after(warehouse, table, int(position["reservoirVersion"]) - 1)
    return all(commit["operation"] != "WRITE" for commit in later)


def _last_batch(path: Path, kind: str) -> int | None:
    return max((int(each.name) for each in path.glob(f"{kind}/*") if each.name.isdigit()), default=None)


def _offsets(path: Path, batch: int) -> list[str]:
    # Spark writes one line with the version of its format, one with its settings, and one per source.
    return Path(path, "offsets", str(batch)).read_text(encoding="utf-8").splitlines()[2:]


def has_progress(path: Path) -> bool:
    """Return whether a stream has begun a batch."""
    return any((path / "offsets").glob("[0-9]*"))


def _is_gone(offset: str, warehouse: Path, table: Table) -> bool:
    """Return whether the table's log no longer contains the version at which the stream stopped."""
    try:
        version = int(json.loads(offset)["reservoirVersion"])
    except (ValueError, KeyError, TypeError):
        return False
    return version < oldest_version(warehouse, table)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The progress of one stream in a folder, and a note with the ids of its tables, its app id and its start.

    Delta skips a write if it knows the write's app id and batch number. An app id that outlived its checkpoint would
    therefore lose data silently, so a new one is made whenever batch numbers restart.
    """

    path: Path
    warehouse: Path
    tables: Sequence[Table]

    @property
    def has_progress(self) -> bool:
        return has_progress(self.path)

    def acquire(self) -> None:
        """Reserve the stream for this process until the process ends, and delete what is torn of its progress.

        Two processes that start at the same time would each create an app id, and write the first batch twice.

        Raises:
            UserError: another process has the stream.
        """
        lock = self.path.with_name(f"{self.path.name}.lock")
        if lock in _locks:
            return
        try:
            _locks[lock] = lock_file(lock)
            atexit.register(_locks[lock].close)
        except BlockingIOError:
            raise UserError(
                f"Another process already runs the stream of the checkpoint {self.path}: stop that process first."
            ) from None
        repair(self.path)

    def refuse_other_tables(self) -> None:
        """Check that the tables belong to the progress. Call this before tables are created.

        Raises:
            UserError: a table of the progress is missing or was replaced, or the note is missing.
        """
        if not self.has_progress:
            return
        try:
            known = json.loads(self._note.read_text(encoding="utf-8"))["tables"]
        except (OSError, ValueError, KeyError):
            raise UserError(
                f"The checkpoint {self.path} is incomplete: delete that folder. Reading continues where bronze ends."
            ) from None
        for name, now in self._table_ids().items():
            if known.get(name) != now:
                raise UserError(
                    f"The checkpoint {self.path} belongs to the table {name}, but that table in "
                    f"{self.warehouse} is missing or was replaced: restore the table, or delete the checkpoint to read "
                    "again all records that Kafka still has."
                )

    def begin(self, start: Callable[[], Mapping[str, Any]]) -> tuple[str, Mapping[str, Any] | None]:
        """Return the stream's name in Delta's transactions, and the position before its first batch.

        Without progress, clear the folder, make a new name, and note the position that `start` returns. Spark asks for
        it again if the first batch is repeated, when the tables already have some of its rows. None if an earlier
        version of Regroup did not note it.
        """
        if not self.has_progress:
            position = start()
            shutil.rmtree(self.path, ignore_errors=True)
            new = {"app_id": uuid.uuid4().hex, "tables": self._table_ids(), "start": position}
            write_whole(self._note, json.dumps(new))
        note = json.loads(self._note.read_text(encoding="utf-8"))
        return str(note["app_id"]), note.get("start")

    @property
    def _note(self) -> Path:
        return self.path / "regroup.json"

    def _table_ids(self) -> dict[str, str | None]:
        return {table.name: table_id(self.warehouse, table) for table in self.tables}
