"""Torn files, as after a power loss or on a full disk: found, and deleted before a job continues.

A torn file belongs to unfinished work (`durability`), which is done again without it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jobs.tables.disk.durability import flush
from jobs.tables.disk.table_log import HINT, checkpoint_of, commit_of, newest_version, sums_of
from jobs.tables.disk.write_lock import write_lock

CHECKED_AT_ONCE = 512
"""Bytes per checksum in a Hadoop checksum file. The checksums follow a magic number and this number."""

PARQUET = b"PAR1"
STEPS = ("offsets", "commits")
"""Folders in which Spark stores one file per batch of a stream."""
FORMAT = re.compile(rb"v\d+")
"""The first line of Spark's files of batches."""
NO_OFFSET = b"-"
"""Spark's entry for a source that has no data yet."""


@dataclass(frozen=True, slots=True)
class Torn:
    """A torn file, or the folder of the progress that is lost with it.

    `described` says which file of what is torn, and `then` what follows after it is deleted.
    """

    path: Path
    described: str
    then: str

    @property
    def sentence(self) -> str:
        return f"{self.described}, as after a loss of power or on a full disk."

    @property
    def deleted(self) -> str:
        """The sentences to print when the file was deleted."""
        return f"{self.sentence} It was deleted, and {self.then}."


def torn_files(warehouse: str | Path) -> Iterator[Torn]:
    """Yield the torn newest files of each table's log and of each stream's progress."""
    for log in _logs(warehouse):
        if found := _torn_in_log(log):
            yield found
    for offsets in sorted(Path(warehouse, "_checkpoints").rglob("offsets")):
        if found := _torn_in_progress(offsets.parent):
            yield found


def repair_logs(warehouse: str | Path) -> Iterator[str]:
    """Delete the torn newest commits and checkpoints of all tables; yield sentences for each. Flush what remains.

    Other processes may write to the tables meanwhile.
    """
    for log in _logs(warehouse):
        # Spark would apply the checksums of a deleted commit to the next commit of that number.
        sums_of(commit_of(log, newest_version(log) + 1)).unlink(missing_ok=True)
        _without_torn_sums(commit_of(log, newest_version(log)))
        while _torn_in_log(log):
            with write_lock(log.parent, alone=True):
                # Looked at again, because another process may have repaired it and committed since.
                if found := _torn_in_log(log):
                    _delete(log, found)
                    yield found.deleted
        # A job that was killed may not have flushed it, and this one will depend on it.
        flush(log.parent, max(0, newest_version(log)))


def repair_progress(folder: Path) -> Iterator[str]:
    """Delete what is torn of a stream's progress; yield sentences for each.

    Only the process that runs the stream may call this.
    """
    while found := _torn_in_progress(folder):
        if found.path == folder:
            shutil.rmtree(folder)
        else:
            found.path.unlink()
            sums_of(found.path).unlink(missing_ok=True)
        yield found.deleted
    for file in (*filter(None, (_newest_batch(folder / name) for name in STEPS)), folder / "metadata"):
        _without_torn_sums(file)


def _logs(warehouse: str | Path) -> list[Path]:
    return sorted(Path(warehouse).glob("*/_delta_log"))


def _torn_in_log(log: Path) -> Torn | None:
    newest = commit_of(log, newest_version(log))
    if newest.exists() and _is_torn(newest):
        described = f"The newest commit of the table {log.parent.name} is torn"
        return Torn(newest, described, "rows from Kafka, and rows made from them, are written again")
    checkpoint = max(filter(None, (*log.glob("*.checkpoint.parquet"), _hinted(log))), default=None)
    if checkpoint and not _ends_as_parquet(checkpoint):
        described = f"The newest checkpoint of the table {log.parent.name} is torn or missing"
        return Torn(checkpoint, described, "older commits are read instead")
    return None


def _delete(log: Path, found: Torn) -> None:
    found.path.unlink(missing_ok=True)
    sums_of(found.path).unlink(missing_ok=True)
    if found.path.suffix == ".parquet":
        (log / HINT).unlink(missing_ok=True)


def _torn_in_progress(folder: Path) -> Torn | None:
    """Return the file or, if the position of the stream is lost, the folder."""
    offsets, commits = (_newest_batch(folder / name) for name in STEPS)
    if any(_is_torn(file) for file in (offsets, folder / "metadata") if file and file.exists()):
        return Torn(folder, f"The progress in {folder} is torn", "the stream finds its position in the tables")
    if commits and _is_torn(commits):
        return Torn(commits, f"The newest file of the progress, {commits}, is torn", "its batch is repeated")
    return None


def _newest_batch(folder: Path) -> Path | None:
    with suppress(FileNotFoundError):
        return max((file for file in folder.iterdir() if file.name.isdigit()), key=lambda f: int(f.name), default=None)
    return None


def _is_torn(file: Path) -> bool:
    """Return whether a file is empty, has a line that is cut or overwritten, or other bytes than its checksums say."""
    raw = file.read_bytes()
    lines = raw.splitlines()
    if len(lines) > 1 and FORMAT.fullmatch(lines[0]):
        del lines[0]
    if not lines or not all(map(_is_whole, lines)):
        return True
    sums = _sums(file)
    if len(sums) < _size_of_sums(raw):
        return False
    pieces = (raw[at : at + CHECKED_AT_ONCE] for at in range(0, len(raw), CHECKED_AT_ONCE))
    return sums != b"".join(zlib.crc32(piece).to_bytes(4) for piece in pieces)


def _is_whole(line: bytes) -> bool:
    """Return whether a line of a commit or of Spark's progress is complete."""
    try:
        if line != NO_OFFSET:
            json.loads(line)
    except ValueError:
        return False
    return True


def _without_torn_sums(file: Path) -> None:
    """Delete the checksums of a file if they are torn themselves: they say nothing, but Spark would refuse the file."""
    if sums_of(file).exists() and file.exists() and len(_sums(file)) < _size_of_sums(file.read_bytes()):
        sums_of(file).unlink(missing_ok=True)


def _sums(file: Path) -> bytes:
    """Return Hadoop's checksums of a file; empty if there are none."""
    try:
        return sums_of(file).read_bytes()[8:]
    except OSError:
        return b""


def _size_of_sums(raw: bytes) -> int:
    return 4 * -(-len(raw) // CHECKED_AT_ONCE)


def _hinted(log: Path) -> Path | None:
    """Return the checkpoint that the hint names; None without a hint, or if the checkpoint has several files."""
    try:
        hint = json.loads((log / HINT).read_bytes())
    except (OSError, ValueError):
        return None
    return None if hint.get("parts") else checkpoint_of(log, hint["version"])


def _ends_as_parquet(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            opened.seek(-len(PARQUET), os.SEEK_END)
            return opened.read() == PARQUET
    except OSError:
        return False
