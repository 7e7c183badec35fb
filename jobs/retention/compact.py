"""Small data files of a table on a machine of one's own put together, in a process that gives way.

Who writes meanwhile waits for the commits alone. Files that a batch replaced by then are left as it made them: whoever
rewrites rows puts the files that held them together himself.
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
from jobs.tables.data_file import DataFile, write_pieces
from jobs.tables.delta_io import table_path
from jobs.tables.engine import connect, in_pieces, show_files
from jobs.tables.full_disk import NO_SPACE, refuse_full
from jobs.tables.local_rewrite import exchange
from pipelines.arrow_types import schema_of
from schemas.tables import Table

FEW_FILES = 4
"""So many are not worth putting together."""

LARGE = {"bronze": 100_000_000}
"""Bytes of a table's files, by layer. Bronze is only appended to."""

LARGE_ELSEWHERE = 16_000_000
"""A batch that changes one row of a file writes the whole of it again."""

AGES_S = (30, 60, 120, 240)
"""Files are put together with those of their age, as these seconds part them: batches replace rows of the last minutes
most, and read the files of the last minutes only.
"""

HOUR_S, DAY_S = 3_600, 86_400
WINDOWS_S = ((HOUR_S, 600), (DAY_S, HOUR_S))
"""Older files are put together with those whose newest row is of the same window: of ten minutes within the last hour,
of an hour within the last day, and before that of a day. Who asks of the last minutes does not open those of the last
hours, and what was put together is not rewritten at each further time.
"""


class Made(NamedTuple):
    """How many files were made into how many."""

    before: int = 0
    after: int = 0


def compact(
    warehouse: Path, table: Table, beside: WorkerProcess, building: AbstractContextManager[object] | None = None
) -> Made:
    """Merge small files of the table. `merged_file` runs in `beside`; `building` is entered for each commit.

    Raises:
        OSError: the disk is full.
    """
    path, made = table_path(warehouse, table), Made()
    for files in files_to_merge(path, table.time, LARGE.get(table.layer, LARGE_ELSEWHERE), time.time()):
        refuse_full(Path(path), max(NO_SPACE, sum(Path(file).stat().st_size for file in files)))
        found: DataFile = beside.ask(warehouse, table, files)
        with building or nullcontext():
            if exchange(path, files, (found,), is_same=True):
                made = Made(made.before + len(files), made.after + 1)
    return made


def files_to_merge(path: str, column: str | None, large: int, now: float) -> list[list[str]]:
    """Files of the table at `path` to be put together, oldest first: of one age and one window of the instants in
    `column`, and at once what makes a large one.
    """
    told = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    newest = told[f"max.{column}"].to_pylist() if f"max.{column}" in told.column_names else [None] * told.num_rows
    files = zip(*(told[name].to_pylist() for name in ("modification_time", "path", "size_bytes")), newest, strict=True)
    alike: dict[tuple[int, ...], list[tuple[str, int]]] = defaultdict(list)
    for modified, name, size, instant in sorted(files, key=lambda file: file[:2]):
        if size < large / 2:
            alike[_age(now - modified / 1000, instant, now)].append((f"{path}/{unquote(name)}", size))
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
    """Equal for files that are put together."""
    recent = sum(age_s < age for age in AGES_S)
    if recent or newest is None:
        return (recent,)
    at = newest.timestamp()
    width = next((width for upto, width in WINDOWS_S if now - at < upto), DAY_S)
    return recent, width, int(at // width)


def merged_file(warehouse: Path, table: Table, files: Sequence[str]) -> DataFile:
    """A data file of the rows of these."""
    schema = schema_of(table)

    def pieces() -> Iterator[pa.Table]:
        with connect() as engine:
            show_files(engine, "held", table, files)
            yield from in_pieces(engine.table("held").select(*table.names), schema)

    return write_pieces(Path(table_path(warehouse, table)), schema, pieces())
