"""Log segment files from a broker's disk (`<topic>-<partition>/<base offset>.log`), batch by batch.

Their content is untrusted.
"""

from __future__ import annotations

import os
import re
from typing import IO, TYPE_CHECKING, NamedTuple

from jobs.kafka.regular_files import open_regular
from pipelines.decoding.record_batches import BEFORE_LENGTH, HEADER, RecordBatch, batch, records
from pipelines.decoding.record_decoding import Quarantined
from pipelines.limits import UNPACKED_BATCH_BYTES
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pipelines.decoding.source_record import SourceRecord

FOLDER = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>[0-9]{1,9})", re.ASCII)
"""The name that a broker gives to the folder of a partition."""

SEGMENT = re.compile(r"[0-9]{20}\.log", re.ASCII)


class UnreadBatch(NamedTuple):
    """A batch that cannot be read from offset `base` on. `last` is None if its end is unknown too."""

    partition: int
    base: int
    last: int | None
    why: Quarantined


def partition_of(path: Path) -> tuple[str | None, int | None]:
    """Return topic and partition of a segment file from its folder's name; None if the name has another form."""
    found = FOLDER.fullmatch(path.absolute().parent.name)
    return (found["topic"], int(found["partition"])) if found else (None, None)


def segment_files(path: Path) -> list[Path]:
    """Return the segment files of a partition's folder in order of offsets; for a file, return the path itself."""
    return sorted(each for each in path.iterdir() if SEGMENT.fullmatch(each.name)) if path.is_dir() else [path]


def segment_records(path: Path, partition: int) -> Iterator[SourceRecord | UnreadBatch]:
    """Yield the records of a segment file in order, and an `UnreadBatch` in place of unreadable ones.

    Preallocated space after the last batch is left out.

    Raises:
        UserError: the file is missing, cannot be read, or is not a regular file.
    """
    missing, other = (
        "name a segment file, its folder or a capture folder",
        "name a segment file, such as 00000000000000000000.log",
    )
    with open_regular(path, "file", if_missing=missing, if_other=other) as stream:
        for found in _batches(stream, partition):
            if isinstance(found, UnreadBatch):
                yield found
                continue
            next_offset = found.base
            for record in records(found, partition):
                if isinstance(record, Quarantined):
                    yield UnreadBatch(partition, next_offset, found.last, record)
                else:
                    next_offset = record.offset + 1
                    yield record


def _batches(stream: IO[bytes], partition: int) -> Iterator[RecordBatch | UnreadBatch]:
    while head := stream.read(HEADER.size):
        if not any(head):
            return
        base, length = int.from_bytes(head[:8], signed=True), int.from_bytes(head[8:BEFORE_LENGTH], signed=True)
        rest = BEFORE_LENGTH + length - HEADER.size
        if len(head) == HEADER.size and (rest < 0 or base < 0):
            why = (
                f"a batch of {length} bytes at byte {stream.tell() - len(head)}: the start of the next batch is unknown"
            )
            yield UnreadBatch(partition, base, None, Quarantined(QuarantineReason.INVALID_LENGTH, why))
            return
        body = stream.read(min(rest, UNPACKED_BATCH_BYTES))
        if len(head) < HEADER.size or len(body) < min(rest, UNPACKED_BATCH_BYTES):
            why = "the file ends within a batch"
            yield UnreadBatch(partition, base, None, Quarantined(QuarantineReason.TRUNCATED, why))
            return
        if len(body) < rest:
            stream.seek(rest - len(body), os.SEEK_CUR)
            why = f"a batch of {length:,} bytes; at most {UNPACKED_BATCH_BYTES:,} are read"
            yield UnreadBatch(partition, base, None, Quarantined(QuarantineReason.OVERSIZED, why))
            continue
        found = batch(head + body)
        yield UnreadBatch(partition, base, None, found) if isinstance(found, Quarantined) else found
