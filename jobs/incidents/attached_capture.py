"""Puts a capture beside an incident document, as one file whose name, size and SHA-256 the document has."""

from __future__ import annotations

import shutil
from hashlib import sha256
from typing import IO, TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from dashboards.answers.incidents.incident import Attached
from jobs.captures.capture_files import CaptureFiles
from jobs.captures.offsets_parquet import NAME
from jobs.captures.recording import LOGS, META, OBSERVATIONS, Capture
from jobs.config.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.config.settings import Settings

FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""The earliest date of a zip file. All files have it, so that the same capture always gives the same bytes."""

READABLE = 0o100644 << 16
PIECE = 1 << 20


def attach(source: Path, document: Path, settings: Settings) -> Attached:
    """Write the capture next to `document`, as `NAME.capture.zip`, and return what the document says of it.

    `source` is a capture folder, whose files are packed, or one file, which is copied as it is and not checked.

    Raises:
        UserError: `source` is neither, a file of it is not a regular file, or the file cannot be written.
    """
    is_folder = source.is_dir()
    suffix = ".zip" if is_folder else source.suffix
    target = document.with_name(f"{_plain(document.stem)}.capture{_plain(suffix)}")
    try:
        if is_folder:
            _pack(source, target, settings)
        else:
            _copy(source, target)
        with target.open("rb") as stream:
            return Attached(file=target.name, size=target.stat().st_size, sha256=_hash(stream))
    except OSError as error:
        raise UserError(f"The capture cannot be put beside {document} ({error.strerror or error}).") from None


def _plain(name: str) -> str:
    """Return a name that a link can hold as it is: letters, digits, dots, hyphens and underscores."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name).lstrip("-_") or "incident"


def _hash(stream: IO[bytes]) -> str:
    found = sha256()
    while piece := stream.read(PIECE):
        found.update(piece)
    return found.hexdigest()


def _pack(folder: Path, target: Path, settings: Settings) -> None:
    """Pack the files of a capture that `replay` reads; nothing else of the folder is opened."""
    Capture(folder, settings.capture_mb, {each.events_layout for each in settings.clusters})
    files = CaptureFiles(folder, settings.capture_mb)
    names = [META, *files.names(NAME, ""), *(n for n in files.names("admin.jsonl", "") if n in OBSERVATIONS)]
    names += [name for kind in LOGS for name in files.names(f"{kind}-", ".log")]
    with ZipFile(target, "w", ZIP_DEFLATED) as packed:
        for name in names:
            entry = ZipInfo(f"capture/{name}", FIRST_DATE)
            entry.external_attr, entry.compress_type = READABLE, ZIP_DEFLATED
            with files.open_as_it_is(name) as stream, packed.open(entry, "w") as out:
                shutil.copyfileobj(stream, out, PIECE)


def _copy(source: Path, target: Path) -> None:
    if not source.is_file():
        raise UserError(f"There is no capture {source}: name a folder of `regroup capture`, or a file.")
    if target.exists() and target.samefile(source):
        return
    with source.open("rb") as stream, target.open("wb") as out:
        shutil.copyfileobj(stream, out, PIECE)
