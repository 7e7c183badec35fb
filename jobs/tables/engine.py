"""DuckDB as jobs ask it: one instance in a process, and for each question a connection of its own.

An instance takes 30 ms of a core to make, and a batch asks tens of questions.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from dashboards.lake.delta_files import relation
from jobs.tables.memory import trim
from jobs.tables.silver_rows import standing_files
from pipelines.arrow_types import schema_of
from schemas.tables import Table

RENEWED_AFTER = 2_000
"""So many questions, some minutes' worth: an instance keeps 1-20 kB of each for as long as it is there (DuckDB 2.0)."""

AT_ONCE = 300_000
"""Rows of a piece: some hundred MB of those that are decoded."""

GONE_AFTER = 200
"""So many questions later nobody asks the old instance any more."""

KEPT_FILES = 500
"""So many files, of a quarter of an hour: of each an instance keeps 150 kB, though nobody may ever open it again."""


@dataclass(slots=True)
class _Asked:
    """What the instance was asked, and whether it keeps what files say of themselves."""

    questions: int = 0
    files: set[str] = field(default_factory=set)
    keeps: bool = True

    @property
    def is_enough(self) -> bool:
        return self.questions >= RENEWED_AFTER or (len(self.files) > KEPT_FILES and self.questions > GONE_AFTER)


_making = threading.Lock()
_asked = _Asked()


@contextmanager
def connect() -> Iterator[DuckDBPyConnection]:
    """A connection whose views nobody else sees; instants are UTC."""
    with _making:
        if _asked.is_enough:
            # Whoever still asks the old one holds it by the connection.
            _instance.cache_clear()
            _asked.questions, _asked.files = 0, set()
        elif _asked.questions == GONE_AFTER:
            trim()
        _asked.questions += 1
        connection = _instance().cursor()
    with connection:
        yield connection


def disable_file_cache() -> None:
    """For a process that opens a file once or twice, before its first question."""
    _asked.keeps = False


@cache
def _instance() -> DuckDBPyConnection:
    # The operating system keeps files already, and gives them up where memory is short.
    found = duckdb.connect(config={"enable_external_file_cache": "false"})
    found.execute("SET GLOBAL TimeZone = 'UTC'")
    # Files never change, and a batch opens the same eighty small ones again and again: a third less of each question.
    found.execute(f"SET GLOBAL parquet_metadata_cache = {_asked.keeps}")
    # What is left at the end of the process DuckDB would report as leaks.
    atexit.unregister(_close)
    atexit.register(_close)
    return found


def _close() -> None:
    if _instance.cache_info().currsize:
        _instance().close()
        _instance.cache_clear()


def show(
    connection: DuckDBPyConnection, name: str, warehouse: Path, table: Table, since: tuple[str, int] | None = None
) -> None:
    """The table as it stands as the view `name`, without files that end before `since`: a column and milliseconds."""
    show_files(connection, name, table, standing_files(warehouse, table, since))


def show_files(connection: DuckDBPyConnection, name: str, table: Table, files: Sequence[str]) -> None:
    """The rows in these files as the view `name`; a column that a file lacks is NULL there.

    DuckDB reads them itself: it decodes the columns of a row only where the ones before them do not rule it out, a
    fifth of the work of scanning them by Arrow.
    """
    _asked.files.update(files)
    schema, is_even = schema_of(table), all(_has_all(file, table.names) for file in files)
    connection.register(name, relation(connection, name, files, schema, is_even=is_even))


def in_pieces(rows: DuckDBPyRelation, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows, so many in memory at once as are worth a row group."""
    for piece in rows.to_arrow_reader(AT_ONCE):
        yield pa.Table.from_batches([piece]).cast(schema)


def files_with_matches(connection: DuckDBPyConnection, files: Sequence[str], which: str, **values: object) -> list[str]:
    """Those of the files with a row of theirs in `found` that `which`, the rest of the question, leaves over."""
    _asked.files.update(files)
    connection.register("found", connection.read_parquet(list(files), filename=True))
    rows = connection.sql(f"SELECT DISTINCT filename FROM found {which}", params=values or None).fetchall()  # noqa: S608 - our own words
    return sorted(file for (file,) in rows)


def quoted(names: Sequence[str]) -> str:
    """Columns as a list in SQL."""
    return ", ".join(f'"{name}"' for name in names)


@lru_cache(maxsize=10_000)
def _has_all(file: str, names: tuple[str, ...]) -> bool:
    """Whether the file has these columns, in this order. Delta never writes a file twice."""
    return tuple(pq.read_schema(file).names) == names
