"""Checkpoints and states of a folder as one archive, so that an object store replaces all of them at once."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

LEFT_OUT = {".crc", ".tmp", ".lock", ".lease"}
"""Endings of files that are not archived: optional checksums of Hadoop's file system for local files, incomplete files,
and locks."""

NOT_KEPT = ("held", "turns", "_tables")
"""Names that are not archived: locks and their folder, and the note with the location of the tables, which is that of
the archive."""

MOST_BYTES = 1 << 30
"""An archive whose files are larger is refused. Those of 10,000 groups have a few megabytes."""


class NoArchiveError(Exception):
    """These bytes are no archive of states."""


def packed(folder: Path) -> bytes:
    """Return the files of a folder in order of their names, without what is not a state."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for file in sorted(folder.rglob("*")):
            name = file.relative_to(folder)
            if _is_kept(name) and (content := _content(file)) is not None:
                entry = tarfile.TarInfo(name.as_posix())
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    # Without a time, so that the same files are the same bytes. Level 1, because each batch packs them again.
    return gzip.compress(out.getvalue(), compresslevel=1, mtime=0)


def unpack(content: bytes, folder: Path) -> None:
    """Write the files of an archive into a folder.

    Raises:
        NoArchiveError: the bytes are no archive, or one with files elsewhere or of more than `MOST_BYTES`.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            if sum(entry.size for entry in archive) > MOST_BYTES:
                raise NoArchiveError("it is too large")
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise NoArchiveError(str(error)) from error


def _is_kept(name: Path) -> bool:
    return name.suffix not in LEFT_OUT and not any(part in NOT_KEPT or part.startswith(".") for part in name.parts)


def _content(file: Path) -> bytes | None:
    """Return the content; None of a folder, or of a file that was removed meanwhile."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return None
