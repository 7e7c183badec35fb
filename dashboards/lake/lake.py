"""Reads the tables of a warehouse: deltalake finds a version's files, DuckDB reads them. Never writes."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from dashboards.lake.address import ObjectStore
from dashboards.lake.allocators import OF_DUCKDB
from dashboards.lake.delta_files import DeltaFiles, Source, quoted
from dashboards.lake.errors import LakeError, is_of_store, store_error
from dashboards.lake.file_index import ALWAYS, SPANS, Between, FileIndex
from dashboards.lake.file_sums import FileSums, sql_moment
from dashboards.lake.query_cache import QueryCache, Row, Rows, rows_of
from dashboards.lake.row_filter import filtered_sql, variables
from dashboards.lake.running_queries import running
from dashboards.lake.sums import SUMS, table_of
from schemas.bronze import BRONZE
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import SCHEMA_VERSION

if TYPE_CHECKING:
    from dashboards.lake.store_files import StoreFiles

LOG = logging.getLogger(__name__)
TABLES = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD, *OPERATIONS)
COLUMNS = {table.name: set(table.names) for table in TABLES}
Parameter = str | int | float | datetime | Sequence[str]
Tables = Sequence[str] | Mapping[str, Between]
PARAMETER = re.compile(r"\$(\w+)")
CELLS = 1_000_000
"""Limit of the cells in cached results: about 100 MB."""
SUM_BYTES = 48 << 20
"""Limit of the kept sums of one table."""

MEMORY = "256MB"
"""Limit of DuckDB's memory. Without a folder for temporary files, a query that needs more fails."""

RENEWED_AFTER = 2_000
"""Queries after which DuckDB's instance is replaced. It keeps 1-4 kB of each (DuckDB 2.0): 3-8 MB until then."""

__all__ = [
    "CELLS",
    "TABLES",
    "Lake",
    "LakeError",
    "LocalLake",
    "Parameter",
    "Row",
    "Rows",
    "WarmLake",
    "frozen",
    "milliseconds",
    "refuse_newer",
]


class Lake(Protocol):
    """The tables of a warehouse. These three methods are all that a warehouse needs. All raise `LakeError`."""

    def versions(self) -> Mapping[str, int]:
        """Return the version of every existing table; a missing table or warehouse is no error."""

    def changed_at(self) -> Mapping[str, int]:
        """Return when each table last changed, in epoch milliseconds, if that is known."""

    def query(
        self,
        sql: str,
        tables: Tables,
        cap: int,
        parameters: Mapping[str, Parameter],
        prefixes: tuple[str, ...] | None = None,
    ) -> Rows:
        """Return at most `cap` rows of a query over `tables`, timestamps as epoch milliseconds.

        The result is empty if a table is missing. The query ends in `LIMIT $cap`. If it has the parameters `cluster`
        and `group`, it must only use rows of that group, in tables that have groups; `tables` may give the time range
        (`dashboards.lake.file_index`). A table may be sums over the range (`dashboards.lake.sums`). With `prefixes`,
        only groups whose ids begin with one of them are read (`dashboards.lake.row_filter`).
        """


class WarmLake(Lake, Protocol):
    """A lake that a server can prepare."""

    def warm(self) -> None:
        """Load now what the first query would wait for."""


class LocalLake:
    """The tables `<warehouse>/<table>`, as the jobs write them. Thread-safe; results are cached by (versions, query).

    The warehouse is a folder, or a path in an object store. Newer versions are checked for every `fresh_seconds`, by
    default every second in a folder and every ten in an object store. The cache holds at most `cells` cells, and the
    sums of files take at most `sum_bytes` per table. With `keeps_files`, DuckDB also caches the contents of a folder's
    files, which helps repeated queries on the same files.
    """

    def __init__(
        self,
        warehouse: str | Path | ObjectStore,
        *,
        fresh_seconds: float | None = None,
        cells: int = CELLS,
        sum_bytes: int = SUM_BYTES,
        keeps_files: bool = True,
    ) -> None:
        self._lock = Lock()
        names = [table.name for table in TABLES]
        self._store = warehouse if isinstance(warehouse, ObjectStore) else None
        self._files: DeltaFiles | StoreFiles
        if isinstance(warehouse, ObjectStore):
            # Imported on use, because Arrow's datasets load pandas, 50 MB that pages of a folder do without.
            store_files = import_module("dashboards.lake.store_files")
            seconds = store_files.FRESH_SECONDS if fresh_seconds is None else fresh_seconds
            self._files = store_files.StoreFiles(warehouse, names, seconds)
            self._folders: list[str] = []
        else:
            self._files = DeltaFiles(Path(warehouse), names, 1.0 if fresh_seconds is None else fresh_seconds)
            self._folders = [str(Path(warehouse).absolute())]
        self._query_cache = QueryCache(cells)
        self._file_indexes = {name: FileIndex(name) for name in SPANS}
        self._file_sums = {name: FileSums(sums, sum_bytes) for name, sums in SUMS.items()}
        self._keeps_files = keeps_files
        self._duckdb, self._asked_of_it = self._new_instance(), 0

    def _new_instance(self) -> DuckDBPyConnection:
        instance = duckdb.connect(config={"threads": 2, "memory_limit": MEMORY, "temp_directory": "", **OF_DUCKDB})
        instance.execute("SET GLOBAL TimeZone = 'UTC'")
        instance.execute(f"SET enable_external_file_cache = {str(self._keeps_files).lower()}")
        # Delta never rewrites a file in place.
        instance.execute("SET validate_external_file_cache = 'NO_VALIDATION'")
        # Limit queries to the warehouse's files: no other file, no network, no extension.
        instance.execute("SET allowed_directories = $folders", {"folders": self._folders})
        for setting in (
            "python_enable_replacements",
            "enable_external_access",
            "autoload_known_extensions",
            "autoinstall_known_extensions",
        ):
            instance.execute(f"SET {setting} = false")
        instance.execute("SET lock_configuration = true")
        return instance

    def _cursor(self) -> DuckDBPyConnection:
        """Return a cursor of the instance, which is replaced after `RENEWED_AFTER` queries."""
        with self._lock:
            self._asked_of_it += 1
            if self._asked_of_it > RENEWED_AFTER:
                # Cursors that still use the old instance keep it alive.
                self._duckdb, self._asked_of_it = self._new_instance(), 1
            return self._duckdb.cursor()

    def warm(self) -> None:
        """Read which files have rows of which groups, and the sums of files, so that the first query need not wait."""
        for name in (*self._file_indexes, *self._file_sums):
            with self._lock:
                source = self._files.source(table_of(name))
            # If files vanish meanwhile, the next query handles it.
            with suppress(duckdb.Error, OSError), running(), self._cursor() as cursor:
                if source is None:
                    continue
                if name in self._file_sums:
                    self._file_sums[name].keep(cursor, source)
                else:
                    self._file_indexes[name].files(cursor, source, None, ALWAYS)

    def versions(self) -> Mapping[str, int]:
        with self._lock:
            return self._files.versions()

    def changed_at(self) -> Mapping[str, int]:
        with self._lock:
            return self._files.changed_at()

    def query(
        self,
        sql: str,
        tables: Tables,
        cap: int,
        parameters: Mapping[str, Parameter],
        prefixes: tuple[str, ...] | None = None,
    ) -> Rows:
        between = dict.fromkeys(tables, ALWAYS) | (tables if isinstance(tables, dict) else {})
        question = Question(sql, cap, parameters, prefixes, between)
        try:
            return self._asked(question)
        except duckdb.BinderException as error:
            raise self._older(question, str(error)) or error from None
        except duckdb.OutOfMemoryException as error:
            LOG.warning(
                "%s; left in use: %s; query: %s", str(error).split("\n", 1)[0], self._memory(), sql.strip()[:200]
            )
            raise LakeError(
                f"A query needs more memory than the {MEMORY} that DuckDB has here (the log lists its use): on a "
                "page, choose a shorter range, or one group."
            ) from None
        except (duckdb.Error, OSError) as error:
            if not self._files.is_outdated(error):
                raise self._unread(error) from None
            # Files of the open version were deleted, so there is a newer version.
            with self._lock:
                for name in tables:
                    self._files.forget(table_of(name))
        try:
            return self._asked(question)
        except (duckdb.Error, OSError) as error:
            raise self._unread(error) from None

    def _unread(self, error: Exception) -> Exception:
        """Return the sentence for an error of the object store, else the error itself."""
        return store_error(self._store, error) if self._store is not None and is_of_store(error) else error

    def _memory(self) -> str:
        """Return the memory that DuckDB uses for each purpose."""
        with running(), self._cursor() as cursor:
            found = cursor.execute(
                "SELECT tag, memory_usage_bytes FROM duckdb_memory() WHERE memory_usage_bytes > 0 ORDER BY 2 DESC"
            ).fetchall()
        return ", ".join(f"{tag} {size / 1e6:.1f} MB" for tag, size in found) or "nothing"

    def _older(self, question: Question, message: str) -> LakeError | None:
        """Return the error for a query that failed because the table lacks a column; None for other failures."""
        for name in map(table_of, question.tables):
            with self._lock:
                source = self._files.source(name)
            lacking = COLUMNS[name] - set(source.schema.names) if source is not None else set()
            if any(f'"{column}"' in message for column in lacking):
                return LakeError(
                    f"The table {name} is of an earlier Regroup: its job adds the missing columns when it starts."
                )
        return None

    def _asked(self, question: Question) -> Rows:
        with self._lock:
            sources = {
                name: found for name in question.tables if (found := self._files.source(table_of(name))) is not None
            }
        refuse_newer({table_of(name): source.schema_version for name, source in sources.items()})
        if len(sources) < len(question.tables):
            return Rows([], is_capped=False)
        return self._query_cache.get(question.key, sources, lambda: self._response(question, sources))

    def _response(self, question: Question, sources: Mapping[str, Source]) -> Rows:
        with running(), self._cursor() as cursor:
            for name, value in variables(question.prefixes or ()).items() if question.prefixes is not None else ():
                cursor.execute(f"SET VARIABLE {name} = $value", {"value": value})
            tables = {
                table: text
                for name, source in sources.items()
                for table, text in self._tables(cursor, name, source, question)
            }
            asked = cursor.sql(with_tables(question.sql, tables), params=question.values)
            return rows_of(milliseconds(asked.to_arrow_table()), question.cap)

    def _tables(
        self, cursor: DuckDBPyConnection, name: str, source: Source, question: Question
    ) -> Iterator[tuple[str, str]]:
        """Return queries, by name, of what the reader may see of the rows that the question may need, or of their sums.

        The sums of a limited reader are computed from the rows that he may see.
        """
        if name in SUMS and question.prefixes is None:
            yield name, self._file_sums[name].query(cursor, name, source, *_range(question))
            return
        table = table_of(name)
        rows = source.rows(cursor, table, self._needed(cursor, table, source, question))
        whole = f"SELECT * FROM {rows}"  # noqa: S608 - our own names and files
        if question.prefixes is None:
            yield table, whole
        else:
            yield f"{table} whole", whole
            yield table, filtered_sql(table, source.schema.names, len(question.prefixes))
        if name in SUMS:
            yield name, SUMS[name].sums_sql(table, *map(sql_moment, _range(question)))

    def _needed(self, cursor: DuckDBPyConnection, name: str, source: Source, question: Question) -> Sequence[str]:
        """Return the files that may have rows of the query's group and time range; all files if it has neither."""
        cluster, group = question.parameters.get("cluster"), question.parameters.get("group")
        key = (cluster, group) if isinstance(cluster, str) and isinstance(group, str) else None
        between = question.between(name)
        if name not in SPANS or (key is None and between == ALWAYS):
            return source.files
        return self._file_indexes[name].files(cursor, source, key, between)


class Question(NamedTuple):
    """The arguments of `Lake.query`; `tables` maps each table to its time range."""

    sql: str
    cap: int
    parameters: Mapping[str, Parameter]
    prefixes: tuple[str, ...] | None
    tables: Mapping[str, Between]

    def between(self, table: str) -> Between:
        """Return the time range in which rows of a stored table are needed."""
        return next((between for name, between in self.tables.items() if table_of(name) == table), ALWAYS)

    @property
    def values(self) -> Mapping[str, Parameter]:
        """Return the parameters in the text. The range of sums need not be in it."""
        named = set(PARAMETER.findall(self.sql))
        values = {**self.parameters, "cap": self.cap + 1}
        return {name: value for name, value in values.items() if name in named}

    @property
    def key(self) -> tuple[Any, ...]:
        return self.sql, self.cap, frozen(self.parameters), self.prefixes


def with_tables(sql: str, tables: Mapping[str, str]) -> str:
    """Return a query that finds these tables, each of a query that may use the ones before it."""
    if not tables:
        return sql
    # Materialized tables would be read completely, with all columns.
    named = ", ".join(f"{quoted(name)} AS NOT MATERIALIZED ({text})" for name, text in tables.items())
    rest = sql.lstrip()
    return f"WITH {named}, {rest[5:]}" if rest.startswith("WITH ") else f"WITH {named} {rest}"


def _range(question: Question) -> tuple[datetime, datetime]:
    start, end = question.parameters["start"], question.parameters["end"]
    assert isinstance(start, datetime)
    assert isinstance(end, datetime)
    return start, end


def refuse_newer(written: Mapping[str, int]) -> None:
    """Raise `LakeError` for a table with a higher schema version than this Regroup knows."""
    newer = next((name for name, version in written.items() if version > SCHEMA_VERSION), None)
    if newer is not None:
        raise LakeError(f"The table {newer} was written by a newer Regroup than these pages: update the pages.")


def frozen(parameters: Mapping[str, Parameter]) -> tuple[Any, ...]:
    """Return the parameters as a hashable key."""
    return tuple(
        (k, v if isinstance(v, str | int | float | datetime) else tuple(v)) for k, v in sorted(parameters.items())
    )


def milliseconds(table: pa.Table) -> pa.Table:
    """Return the table with timestamps as integers: milliseconds since the epoch."""
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            whole = table.column(position).cast(pa.timestamp("ms", tz=field.type.tz), safe=False).cast(pa.int64())
            table = table.set_column(position, field.name, whole)
    return table


def moment(ms: int) -> datetime:
    """Return milliseconds since the epoch as a parameter of a query."""
    return datetime.fromtimestamp(ms / 1000, UTC)
