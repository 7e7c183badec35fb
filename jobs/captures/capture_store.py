"""Captures in an object store: read from a copy in a temporary folder, and stored when they are complete.

deltalake brings the clients of the stores; their credentials come from the environment, as those of tables do.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileInfo, FileSelector, FileSystem, PyFileSystem

from dashboards.lake.address import ObjectStore
from dashboards.lake.store_files import LIMITS
from jobs.captures.capture_files import MB, PLAIN_NAME
from jobs.captures.recording import META
from jobs.config.errors import UserError
from jobs.config.places import place_of
from jobs.spark.s3_failure import failure

PREFIX = "regroup-capture-"
PART_BYTES = 1 << 20


@contextmanager
def local_copy(place: Path, limit_mb: int) -> Iterator[Path]:
    """Yield the folder of a capture. A copy of what is in an object store is removed afterwards.

    Raises:
        UserError: the address is not valid, the store cannot be read, or its files are larger than `limit_mb`.
    """
    store = _store(place)
    if store is None:
        yield place
        return
    with TemporaryDirectory(prefix=PREFIX) as folder:
        with _named(store):
            files = _system(store)
            found = _files(files)
            if META not in {each.base_name for each in found}:
                raise UserError(f"There is no capture in {store}: it has no {META}.")
            if sum(each.size for each in found) > limit_mb * MB:
                raise UserError(
                    f"The capture {store} is larger than the setting capture_mb ({limit_mb:,} MB): record less, or "
                    "raise the setting if this machine has the memory."
                )
            for each in found:
                with (
                    files.open_input_stream(each.path, compression=None) as stream,
                    Path(folder, each.base_name).open("wb") as out,
                ):
                    shutil.copyfileobj(stream, out)
        yield Path(folder)


@contextmanager
def new_capture(place: Path) -> Iterator[Path]:
    """Yield a new folder for a capture, whose files are in the object store at the end if the place is there.

    After an error, what was recorded stays in the folder, and the folder is named.

    Raises:
        UserError: the place is in use, is a file or not valid, or the store cannot be written.
    """
    store = _store(place)
    if store is None:
        if place.exists() and not place.is_dir():
            raise UserError(f"{place} is a file, not a folder: give a new folder with --out.")
        if place.exists() and any(place.iterdir()):
            raise UserError(f"The folder {place} is not empty: give a new one with --out.")
        yield place
        return
    with _named(store):
        if _files(_system(store)):
            raise UserError(f"There is a capture in {store} already: give a new address with --out.")
    folder = Path(mkdtemp(prefix=PREFIX))
    try:
        yield folder
        with _named(store):
            _put(folder, store)
    except UserError as error:
        if any(folder.iterdir()):
            raise UserError(f"{error} What was recorded is in {folder}: copy it from there.") from None
        folder.rmdir()
        raise
    shutil.rmtree(folder)


class _Handler(DeltaStorageHandler):
    def put(self, file: Path) -> None:
        """Store a file under its name. Arrow's streams give deltalake buffers, which it does not take."""
        out = self._handler.open_output_stream(file.name)
        with file.open("rb") as stream:
            shutil.copyfileobj(stream, out, PART_BYTES)
        out.close()  # type: ignore[attr-defined]  # the stub of deltalake lacks it


def _put(folder: Path, store: ObjectStore) -> None:
    handler = _Handler(store.url(), LIMITS)
    # The last one makes it a capture.
    for file in sorted(folder.iterdir(), key=lambda each: each.name == META):
        handler.put(file)


def _store(place: Path) -> ObjectStore | None:
    found = place_of(place, "capture")
    return found if isinstance(found, ObjectStore) else None


def _system(store: ObjectStore) -> FileSystem:
    return PyFileSystem(DeltaStorageHandler(store.url(), LIMITS))


def _files(files: FileSystem) -> list[FileInfo]:
    """Return what may be a capture's files: those with plain names directly below the address."""
    found = files.get_file_info(FileSelector("", allow_not_found=True))
    return [each for each in found if each.is_file and PLAIN_NAME.fullmatch(each.base_name)]


@contextmanager
def _named(store: ObjectStore) -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            # Of a file on this machine.
            raise
        what = f"The capture {store}"
        why = "check the address, and the credentials in the environment"
        # The sentences of `failure` name the variables of S3.
        found = failure(what, error) if store.scheme == "s3" else None
        raise found or UserError(f"{what} cannot be read or written: {why}.") from None
