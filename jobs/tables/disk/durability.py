"""What is written is complete on the disk before something depends on it.

Delta and Spark rename a file into place, and the operating system writes its bytes to the disk later. After a power
loss, the newest files may be torn, or empty, which Delta reads as a commit without changes. So the tables' files are
flushed to the disk before a batch counts as done, and the offsets of a batch before its rows are written. A torn file
therefore belongs to unfinished work, which is repeated (`torn`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, takewhile
from pathlib import Path
from typing import TypeVar

from jobs.tables.disk.table_log import HINT, added_files, checkpoint_of, commit_of, newest_version, sums_of

LOST = {errno.EIO, errno.ENOSPC, errno.EDQUOT}

Rows = TypeVar("Rows")


def write_whole(path: Path, text: str) -> None:
    """Write a small file, and create its folder. After a crash or a power loss it has this text or the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    new.write_text(text, encoding="utf-8")
    sync(new)
    new.replace(path)
    sync(path.parent)


@contextmanager
def on_disk(path: str) -> Iterator[None]:
    """Flush everything that is committed to the table at `path` in the block. Object storage needs no flush."""
    before = newest_version(Path(path, "_delta_log"))
    yield
    flush(Path(path), before + 1)


def flush(table: Path, since: int) -> None:
    """Flush the versions of a table from `since` on, with their files."""
    log = table / "_delta_log"
    # Tried one by one, because versions have no gaps, and listing a log of thousands of commits takes time.
    versions = [*takewhile(lambda version: commit_of(log, version).exists(), count(since))]
    new = [commit_of(log, version) for version in versions]
    written = [table / name for commit in new for name in added_files(commit)]
    # A checkpoint takes the place of older commits, which are deleted.
    checkpoints = [file for version in versions if (file := checkpoint_of(log, version)).exists()]
    whole = [*written, *new, *checkpoints, *([log / HINT] if checkpoints else [])]
    # Spark refuses a file whose checksums are torn.
    sums = [each for file in whole if (each := sums_of(file)).exists()]
    for each in (*whole, *sums, *{file.parent for file in whole}):
        sync(each)


def after_sync(progress: Path, batch: Callable[[Rows, int], None]) -> Callable[[Rows, int], None]:
    """Return the function of a stream's batches with its progress flushed to the disk first.

    If the offsets of a batch are torn, its rows were therefore not written, and Spark may choose other offsets.
    """

    def synced(rows: Rows, number: int) -> None:
        before = f"commits/{number - 1}" if number else "metadata"
        for file in (progress / before, progress / "offsets" / str(number)):
            for each in (file, sums_of(file), file.parent):
                sync(each)
        batch(rows, number)

    return synced


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk.

    Raises:
        OSError: the disk is full or broken. A storage that knows no flush is no error.
    """
    try:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
    except OSError as error:
        if error.errno in LOST:
            raise
