"""DuckDB for jobs: one instance per process, and one connection per query.

Creating an instance takes 30 ms of a core, and a batch runs tens of queries.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from dashboards.lake.allocators import OF_DUCKDB, trim
from dashboards.lake.delta_files import relation
from dashboards.lake.running_queries import finish, running
from jobs.tables import named_tables
from jobs.tables.as_of import version_of
from jobs.tables.paths import TableName, table_path
from jobs.tables.silver_rows import current_files
from pipelines.arrow_types import schema_of
from schemas.tables import Table

RENEWED_AFTER = 500
"""Queries after which the instance is replaced, every 13 batches. It keeps 9 kB of each until then (DuckDB 2.0)."""

AT_ONCE = 100_000
"""Rows of a piece, and of a row group of bronze. Of 7 million runs of commits in 27 files, merging takes 240 MB at the
peak, and 465 with pieces of 300,000; readers then hold the metadata of 78 row groups instead of 28.
"""

GONE_AFTER = 200
"""Queries after which the old instance is no longer in use, and after which a file that none of them opened counts as
replaced. A batch runs 38 queries.
"""

KEPT_FILES = 100
"""Replaced files after which the instance is replaced. It keeps 50-120 kB for each file that it ever opened, and a
batch replaces ten. Later, the freed memory would be in so many pieces that the allocator could not return it.
"""


@dataclass(slots=True)
class _Asked:
    """The number of queries of the instance, its files with the number of their last query, and whether it caches file
    metadata.
    """

    questions: int = 0
    files: dict[str, int] = field(default_factory=dict)
    keeps: bool = True

    def add(self, files: Sequence[str]) -> None:
        self.files.update(dict.fromkeys(files, self.questions))

    @property
    def is_enough(self) -> bool:
        if self.questions <= GONE_AFTER or len(self.files) <= KEPT_FILES:
            return self.questions >= RENEWED_AFTER
        # Copied, because other threads add files.
        replaced = sum(at < self.questions - GONE_AFTER for at in list(self.files.values()))
        return replaced > KEPT_FILES or self.questions >= RENEWED_AFTER


_making = threading.Lock()
_asked = _Asked()


@contextmanager
def connect() -> Iterator[DuckDBPyConnection]:
    """Yield a connection with private views. Timestamps are UTC."""
    with running(), _connection() as connection:
        yield connection


def _connection() -> DuckDBPyConnection:
    with _making:
        if _asked.is_enough:
            # Connections that still use the old instance keep it alive.
            _instance.cache_clear()
            _asked.questions, _asked.files = 0, {}
        elif _asked.questions == GONE_AFTER:
            trim()
        _asked.questions += 1
        return _instance().cursor()


def disable_file_cache() -> None:
    """Turn off the metadata cache, in a process that opens each file once or twice. Call it before the first query."""
    _asked.keeps = False


def use_one_thread() -> None:
    """Let all queries of this process use one thread, because processes run on the other cores."""
    with connect() as engine:
        engine.execute("SET GLOBAL threads = 1")


@cache
def _instance() -> DuckDBPyConnection:
    # Not cached, because the operating system caches files already, and frees that memory when it is short.
    found = duckdb.connect(config={"enable_external_file_cache": "false", **OF_DUCKDB})
    found.execute("SET GLOBAL TimeZone = 'UTC'")
    # Cached, because files never change, and a batch opens the same eighty small ones repeatedly: a third less per
    # query.
    found.execute(f"SET GLOBAL parquet_metadata_cache = {_asked.keeps}")
    # Closed at exit, because DuckDB would otherwise report leaks.
    atexit.unregister(_close)
    atexit.register(_close)
    return found


def _close() -> None:
    finish()
    if _instance.cache_info().currsize:
        # A query that takes longer than the wait keeps it open.
        with suppress(duckdb.Error):
            _instance().close()
        _instance.cache_clear()


def show(
    connection: DuckDBPyConnection,
    name: str,
    warehouse: Path,
    table: Table,
    since: tuple[str, int] | None = None,
    *,
    columns: Sequence[str] | None = None,
    groups: pa.Table | None = None,
    where: str | None = None,
    is_distinct: bool = False,
) -> None:
    """Register the current table as the view `name`, without files that end before `since` (a column and ms).

    If only Spark reads the table, this process gets only these columns of these groups (cluster, group_id), in rows
    that fulfil the condition `where` in Spark's SQL, each once if `is_distinct`. The query must not depend on other
    rows. From files, DuckDB reads only what a query needs.
    """
    path = table_path(warehouse, table)
    if isinstance(path, TableName):
        of = version_of(table)
        connection.register(
            name,
            named_tables.rows(
                path,
                table,
                columns or table.names,
                since=since,
                groups=groups,
                where=where,
                version=of,
                is_distinct=is_distinct,
            ),
        )
        return
    show_files(connection, name, table, current_files(warehouse, table, since))


def show_files(connection: DuckDBPyConnection, name: str, table: Table, files: Sequence[str]) -> None:
    """Register the rows of these files as the view `name`. A column that a file lacks is NULL there.

    DuckDB reads the files itself. It decodes a column of a row only if the columns before it pass the filter, which is
    a fifth of the work of a scan by Arrow.
    """
    _asked.add(files)
    schema, is_even = schema_of(table), all(_has_all(file, table.names) for file in files)
    connection.register(name, relation(connection, name, files, schema, is_even=is_even))


def in_pieces(rows: DuckDBPyRelation, schema: pa.Schema, most: int = AT_ONCE) -> Iterator[pa.Table]:
    """Yield the rows in pieces of at most `most` rows, each worth a row group.

    DuckDB returns a batch for each row group that it reads. If each became a row group again, merged files would have
    as many as the files that they replace, and readers hold 25 to 100 kB of metadata for each.
    """
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in rows.to_arrow_reader(most):
        if waiting and count + batch.num_rows > most:
            yield pa.Table.from_batches(waiting).cast(schema)
            waiting, count = [], 0
        waiting.append(batch)
        count += batch.num_rows
    if waiting:
        yield pa.Table.from_batches(waiting).cast(schema)


def files_with_matches(connection: DuckDBPyConnection, files: Sequence[str], which: str, **values: object) -> list[str]:
    """Return the files with a row in the view `found` that passes `which`, the rest of the query."""
    _asked.add(files)
    connection.register("found", connection.read_parquet(list(files), filename=True))
    rows = connection.sql(f"SELECT DISTINCT filename FROM found {which}", params=values or None).fetchall()  # noqa: S608 - our own words
    return sorted(file for (file,) in rows)


def quoted(names: Sequence[str]) -> str:
    """Return columns as a list in SQL."""
    return ", ".join(f'"{name}"' for name in names)


@lru_cache(maxsize=10_000)
def _has_all(file: str, names: tuple[str, ...]) -> bool:
    """Return whether the file has these columns in this order. Cached, because Delta never writes a file twice."""
    return tuple(pq.read_schema(file).names) == names
