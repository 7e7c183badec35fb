"""`offsets.parquet` of a capture: checked before it is unpacked, and read in batches within the capture's budget.

A few bytes of Parquet can describe gigabytes, for example with a page of zeros or one large dictionary entry that is
referenced a million times.
"""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dashboards.lake.without_pandas import without_pandas
from jobs.captures.capture_files import Budget
from jobs.config.errors import UserError
from pipelines.decoding.source_record import SourceRecord
from pipelines.parquet_pages import DELTA_BYTE_ARRAY, DICTIONARY, pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.captures.capture_files import CaptureFiles

NAME, ACCOUNT = "offsets.parquet", "offsets"
COLUMNS = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp_ms": pa.int64(),
    "key": pa.binary(),
    "value": pa.binary(),
}
NUMBERS = ("partition", "offset", "timestamp_ms")
RECORD_COST = 1_000
"""Bytes charged per record in addition to its key and value, as a Python object and as a row of bronze."""

PAGE_COST = 1_000
FOOTER_BYTES = 4_000_000
CONTAINERS = 20_000
"""Maximum number of row groups and columns of a file. With the limit for strings, it bounds the file's metadata."""

LAST = {"partition": 2**31 - 1, "offset": 2**63 - 2}
"""The highest valid value of a column. The offset after the last one must also be valid."""

TOO_OLD = re.compile(r"\s*parquet-cpp(?!-arrow)", re.IGNORECASE)
"""Writers that record wrong column sizes (PARQUET-816), so that pages could lie beyond a column's end."""


def read_records(files: CaptureFiles, *, is_probed: bool = False) -> list[SourceRecord]:
    """Return every record, ordered by partition and offset.

    Raises:
        UserError: the file is missing, broken, too large or of another schema, or it holds an offset twice.
    """
    path = files.folder / NAME
    files.budget.reset(ACCOUNT)
    try:
        raw = files.read(NAME, ACCOUNT)
    except FileNotFoundError:
        raise UserError(f"The capture {files.folder} has no {NAME}: record it again.") from None
    if is_probed:
        _probe(raw, files)
    try:
        found = list(_checked_records(raw, files.budget))
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        why = str(error).split("\n", 1)[0][:200]
        raise UserError(
            f"The file {path} is not Parquet as a capture has it ({why}): record the capture again."
        ) from None
    found.sort(key=lambda record: record[:2])
    for before, after in pairwise(found):
        if before[:2] == after[:2]:
            raise UserError(
                f"The file {path} holds the offset {after.offset} of partition {after.partition} twice: record the "
                "capture again."
            )
    return found


def _probe(raw: bytes, files: CaptureFiles) -> None:
    """Read the file in a separate process first, because some broken metadata makes Arrow abort the process.

    Raises:
        UserError: a signal ended the process.
    """
    command = [sys.executable, "-P", "-m", "jobs.captures.offsets_parquet", str(files.budget.limit_mb)]
    ended = subprocess.run(command, input=raw, capture_output=True, check=False)
    if ended.returncode < 0:
        raise UserError(
            f"The file {files.folder / NAME} is not Parquet as a capture has it (Arrow cannot read its metadata): "
            "record the capture again."
        )


def _checked_records(raw: bytes, budget: Budget) -> Iterator[SourceRecord]:
    file = _opened(raw)
    _check_pages(budget, raw, file.metadata)
    yield from _records(budget, file)


def _opened(raw: bytes) -> pq.ParquetFile:
    if len(raw) < 12 or int.from_bytes(raw[-8:-4], "little") > FOOTER_BYTES:
        raise ValueError(f"its footer is missing or larger than {FOOTER_BYTES:,} bytes")
    options = {"pre_buffer": False, "arrow_extensions_enabled": False}
    limits = {"thrift_string_size_limit": FOOTER_BYTES, "thrift_container_size_limit": CONTAINERS}
    file = pq.ParquetFile(pa.BufferReader(raw), **options, **limits)
    if TOO_OLD.match(file.metadata.created_by or ""):
        raise ValueError("it was written by a release of parquet-cpp that is too old")
    schema = file.schema_arrow
    for name, kind in COLUMNS.items():
        found = [schema.field(at).type for at in schema.get_all_field_indices(name)]
        types = [each.value_type if pa.types.is_dictionary(each) else each for each in found]
        if types != [kind]:
            there = ", ".join(map(str, types))[:100] or "none"
            raise ValueError(f"it needs one column {name} of type {kind}, but has {there}")
    # Values are read as dictionary indices until their size is charged.
    return pq.ParquetFile(pa.BufferReader(raw), read_dictionary=["key", "value"], **options, **limits)


def _check_pages(budget: Budget, raw: bytes, metadata: pq.FileMetaData) -> None:
    """Charge the memory that reading will take.

    Raises:
        ValueError: a page claims impossible sizes.
        UserError: the budget is exceeded.
    """
    spend = budget.spend
    wanted = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if group.num_rows < 0:
            raise ValueError("a row group has a negative number of rows")
        spend(ACCOUNT, group.num_rows * RECORD_COST, NAME)
        for column in (group.column(wanted[name]) for name in COLUMNS):
            start = column.data_page_offset
            if column.has_dictionary_page and column.dictionary_page_offset:
                start = min(start, column.dictionary_page_offset)
            left = group.num_rows
            for page in pages(raw, start, column.total_compressed_size):
                spend(ACCOUNT, page.unpacked + PAGE_COST, NAME)
                left -= 0 if page.kind == DICTIONARY else page.values
                # Each dictionary entry takes at least 4 bytes, so a larger count would only waste memory.
                if left < 0 or (page.kind == DICTIONARY and page.values > page.unpacked // 4):
                    raise ValueError("a page claims more values than it can hold")
                if page.encoding == DELTA_BYTE_ARRAY:
                    raise ValueError("the encoding DELTA_BYTE_ARRAY is not supported")


def _records(budget: Budget, file: pq.ParquetFile) -> Iterator[SourceRecord]:
    left = file.metadata.num_rows
    for batch in file.iter_batches(columns=list(COLUMNS), use_threads=False):
        if (left := left - len(batch)) < 0:
            raise ValueError("it has more rows than it says")
        columns = {name: batch.column(batch.schema.get_field_index(name)) for name in COLUMNS}
        for name in NUMBERS:
            if columns[name].null_count:
                raise ValueError(f"the column {name} has a record without a value")
        for name, last in LAST.items():
            found = pc.min_max(columns[name]).as_py()
            if len(batch) and not 0 <= found["min"] <= found["max"] <= last:
                raise ValueError(f"the column {name} has a value that Kafka never writes")
        values = [columns[name].to_pylist() for name in NUMBERS]
        values += [_blobs(budget, columns[name]) for name in ("key", "value")]
        yield from map(SourceRecord._make, zip(*values, strict=True))


def _blobs(budget: Budget, column: pa.DictionaryArray) -> list[bytes | None]:
    """Charge the size of the values, then return them; equal values are one object."""
    sizes = pc.fill_null(pc.take(pc.binary_length(column.dictionary), column.indices), 0)
    budget.spend(ACCOUNT, pc.sum(pc.cast(sizes, pa.int64())).as_py() or 0, NAME)
    values = column.dictionary.to_pylist()
    return [None if at is None else values[at] for at in column.indices.to_pylist()]


if __name__ == "__main__":
    without_pandas()
    # Exceptions are ignored here, because the parent raises and reports the same ones. Only an abort ends this early.
    with suppress(Exception):
        for _ in _checked_records(sys.stdin.buffer.read(), Budget(Path(NAME), int(sys.argv[1]))):
            pass
