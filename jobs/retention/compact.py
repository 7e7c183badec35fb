"""Compaction of a table's small data files in local mode, in a worker process with low priority.

Other writers wait only for the commits. Files that a batch replaces meanwhile are left alone, because the batch merges
the files that it rewrites.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from jobs.processes.worker_process import WorkerProcess
from jobs.tables.disk.data_file import DataFile, write_pieces
from jobs.tables.disk.full_disk import NO_SPACE, refuse_full
from jobs.tables.engine import connect, in_pieces, quoted, show_files
from jobs.tables.local_rewrite import exchange
from jobs.tables.paths import table_path
from pipelines.arrow_types import schema_of
from schemas.tables import Table

FEW_FILES = 4
"""Number of files that is not worth compacting."""

LARGE = {"bronze": 100_000_000}
"""Size in bytes of a compacted file, by layer. Bronze is large, because it is only appended to."""

LARGE_ELSEWHERE = 16_000_000
"""Size in bytes of a compacted file in other layers. A batch that changes one row rewrites the whole file."""

ROWS_TOGETHER = 8_000
"""Maximum number of rows of a row group outside bronze. With fewer, readers would hold more metadata."""

AGES_S = (30, 60, 120, 240)
"""Limits between ages of files, in seconds. Only files of the same age are merged, because batches mostly replace rows
of the last minutes, and read only the files of the last minutes.
"""

HOUR_S, DAY_S = 3_600, 86_400
WINDOWS_S = ((HOUR_S, 600), (DAY_S, HOUR_S))
"""Time windows of older files: (age up to which it applies, length), in seconds. Only files whose newest row is in the
same window are merged: ten minutes within the last hour, an hour within the last day, and otherwise a day. So a reader
of the last minutes does not open files of the last hours, and compacted files are not rewritten each time.
"""


class Made(NamedTuple):
    """The number of merged files, and of files made from them."""

    before: int = 0
    after: int = 0


def compact(
    warehouse: Path, table: Table, worker: WorkerProcess, building: AbstractContextManager[object] | None = None
) -> Made:
    """Merge small files of the table. `merged_file` runs in `worker`; `building` is held for each commit.

    Raises:
        OSError: the disk is full.
    """
    path, made = table_path(warehouse, table), Made()
    for files in files_to_merge(path, table.time, LARGE.get(table.layer, LARGE_ELSEWHERE), time.time()):
        refuse_full(Path(path), max(NO_SPACE, sum(Path(file).stat().st_size for file in files)))
        found: DataFile = worker.ask(warehouse, table, files)
        with building or nullcontext():
            if exchange(path, files, (found,), is_same=True):
                made = Made(made.before + len(files), made.after + 1)
    return made


def files_to_merge(path: str, column: str | None, large: int, now: float) -> list[list[str]]:
    """Return groups of files of the table at `path` to merge, oldest first.

    The files of a group have the same age and the same window of the timestamps in `column`. Each group makes one file
    of about `large` bytes.
    """
    stored = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    newest = stored[f"max.{column}"].to_pylist() if f"max.{column}" in stored.column_names else [None] * stored.num_rows
    files = zip(
        *(stored[name].to_pylist() for name in ("modification_time", "path", "size_bytes")), newest, strict=True
    )
    alike: dict[tuple[int, ...], list[tuple[str, int]]] = defaultdict(list)
    for modified, name, size, at in sorted(files, key=lambda file: file[:2]):
        if size < large / 2:
            alike[_age(now - modified / 1000, at, now)].append((f"{path}/{unquote(name)}", size))
    found: list[list[str]] = []
    for of_age in alike.values():
        room = 0
        for name, size in of_age:
            if size > room:
                found.append([])
                room = large
            found[-1].append(name)
            room -= size
    return [files for files in found if len(files) > FEW_FILES]


def _age(age_s: float, newest: datetime | None, now: float) -> tuple[int, ...]:
    """Return a key that is equal for files to merge."""
    recent = sum(age_s < age for age in AGES_S)
    if recent or newest is None:
        return (recent,)
    at = newest.timestamp()
    width = next((width for upto, width in WINDOWS_S if now - at < upto), DAY_S)
    return recent, width, int(at // width)


def merged_file(warehouse: Path, table: Table, files: Sequence[str]) -> DataFile:
    """Write the rows of these files to one data file.

    Outside bronze, they are in the order of the table's clustering and in small row groups, so a reader of one group
    reads one or two of them.
    """
    schema = schema_of(table)

    def pieces() -> Iterator[pa.Table]:
        with connect() as engine:
            show_files(engine, "held", table, files)
            rows = engine.table("held").select(*table.names)
            if table.layer == "bronze":
                yield from in_pieces(rows, schema)
                return
            if table.cluster_by:
                rows = rows.order(quoted(table.cluster_by))
            yield from in_pieces(rows, schema, ROWS_TOGETHER)

    return write_pieces(Path(table_path(warehouse, table)), schema, pieces())
