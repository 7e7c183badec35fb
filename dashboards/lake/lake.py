"""Reads the tables of a warehouse folder: deltalake finds a version's files, DuckDB reads them. Never writes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection

from dashboards.lake.delta_files import DeltaFiles, Source
from dashboards.lake.file_index import ALWAYS, SPANS, Between, FileIndex
from dashboards.lake.query_cache import QueryCache, Row, Rows, rows_of
from dashboards.lake.row_filter import filtered
from dashboards.lake.running_queries import running
from schemas.bronze import BRONZE
from schemas.gold import GOLD
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import SCHEMA_VERSION

LOG = logging.getLogger(__name__)
TABLES = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD, *OPERATIONS)
COLUMNS = {table.name: set(table.names) for table in TABLES}
Parameter = str | int | float | datetime | Sequence[str]
Tables = Sequence[str] | Mapping[str, Between]
CELLS = 1_000_000
"""Limit of the cells in cached results: about 100 MB."""

MEMORY = "256MB"
"""Limit of DuckDB's memory. Without a folder for temporary files, a query that needs more fails."""

RENEWED_AFTER = 10_000
"""Queries after which DuckDB's instance is replaced. It keeps 1-2 kB of each (DuckDB 2.0): 10 MB until then."""

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


class LakeError(Exception):
    """An existing table cannot be read. The message is a sentence for readers of the pages, with the next step."""


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
        (`dashboards.lake.file_index`). With `prefixes`, only groups whose ids begin with one of them are read
        (`dashboards.lake.row_filter`).
        """


class WarmLake(Lake, Protocol):
    """A lake that a server can prepare."""

    def warm(self) -> None:
        """Load now what the first query would wait for."""


class LocalLake:
    """The tables `<warehouse>/<table>`, as the jobs write them. Thread-safe; results are cached by (versions, query).

    Newer versions are checked for every `fresh_seconds`. The cache holds at most `cells` cells. With `keeps_files`,
    DuckDB also caches file contents, which helps repeated queries on the same files.
    """

    def __init__(
        self, warehouse: str | Path, *, fresh_seconds: float = 1.0, cells: int = CELLS, keeps_files: bool = True
    ) -> None:
        self._lock = Lock()
        self._files = DeltaFiles(Path(warehouse), (table.name for table in TABLES), fresh_seconds)
        self._query_cache = QueryCache(cells)
        self._file_indexes = {name: FileIndex(name) for name in SPANS}
        self._folder, self._keeps_files = str(Path(warehouse).absolute()), keeps_files
        self._duckdb, self._asked_of_it = self._new_instance(), 0

    def _new_instance(self) -> DuckDBPyConnection:
        instance = duckdb.connect(config={"threads": 2, "memory_limit": MEMORY, "temp_directory": ""})
        instance.execute("SET GLOBAL TimeZone = 'UTC'")
        instance.execute(f"SET enable_external_file_cache = {str(self._keeps_files).lower()}")
        # Delta never rewrites a file in place.
        instance.execute("SET validate_external_file_cache = 'NO_VALIDATION'")
        # Limit queries to the warehouse's files: no other file, no network, no extension.
        instance.execute("SET allowed_directories = $folders", {"folders": [self._folder]})
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
        """Read which files have rows of which groups, so that the first query on a group need not wait."""
        for name, index in self._file_indexes.items():
            with self._lock:
                source = self._files.source(name)
            # If files vanish meanwhile, the next query handles it.
            with suppress(duckdb.Error), running(), self._cursor() as cursor:
                if source is not None and source.is_even:
                    index.files(cursor, source.files, None, ALWAYS)

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
        except duckdb.IOException:
            # Files of the open version were deleted, so there is a newer version.
            with self._lock:
                for name in tables:
                    self._files.forget(name)
            return self._asked(question)

    def _memory(self) -> str:
        """Return the memory that DuckDB uses for each purpose."""
        with running(), self._cursor() as cursor:
            found = cursor.execute(
                "SELECT tag, memory_usage_bytes FROM duckdb_memory() WHERE memory_usage_bytes > 0 ORDER BY 2 DESC"
            ).fetchall()
        return ", ".join(f"{tag} {size / 1e6:.1f} MB" for tag, size in found) or "nothing"

    def _older(self, question: Question, message: str) -> LakeError | None:
        """Return the error for a query that failed because the table lacks a column; None for other failures."""
        for name in question.tables:
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
            sources = {name: found for name in question.tables if (found := self._files.source(name)) is not None}
        refuse_newer({name: source.schema_version for name, source in sources.items()})
        if len(sources) < len(question.tables):
            return Rows([], is_capped=False)
        return self._query_cache.get(question.key, sources, lambda: self._response(question, sources))

    def _response(self, question: Question, sources: Mapping[str, Source]) -> Rows:
        with running(), self._cursor() as cursor:
            for name, source in sources.items():
                whole = source.relation(cursor, name, self._needed(cursor, name, source, question))
                prefixes = question.prefixes
                cursor.register(name, whole if prefixes is None else filtered(cursor, name, whole, prefixes))
            asked = cursor.sql(question.sql, params={**question.parameters, "cap": question.cap + 1})
            return rows_of(milliseconds(asked.to_arrow_table()), question.cap)

    def _needed(self, cursor: DuckDBPyConnection, name: str, source: Source, question: Question) -> Sequence[str]:
        """Return the files that may have rows of the query's group and time range; all files if it has neither."""
        cluster, group = question.parameters.get("cluster"), question.parameters.get("group")
        key = (cluster, group) if isinstance(cluster, str) and isinstance(group, str) else None
        between = question.tables[name]
        if name not in SPANS or not source.is_even or (key is None and between == ALWAYS):
            return source.files
        return self._file_indexes[name].files(cursor, source.files, key, between)


class Question(NamedTuple):
    """The arguments of `Lake.query`; `tables` maps each table to its time range."""

    sql: str
    cap: int
    parameters: Mapping[str, Parameter]
    prefixes: tuple[str, ...] | None
    tables: Mapping[str, Between]

    @property
    def key(self) -> tuple[Any, ...]:
        return self.sql, self.cap, frozen(self.parameters), self.prefixes


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
