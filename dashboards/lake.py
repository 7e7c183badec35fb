"""Reads the tables of a warehouse folder: deltalake finds a version's files, duckdb answers from them. Never writes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple, Protocol

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from schemas.bronze import BRONZE
from schemas.gold import GOLD
from schemas.silver import REASSIGNMENT_TABLES, SILVER

TABLES = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD)
Row = dict[str, Any]
Parameter = str | int | datetime | Sequence[str]


class Rows(NamedTuple):
    """An answer; `is_capped` when there would have been more rows."""

    rows: list[Row]
    is_capped: bool


class Lake(Protocol):
    """Where tables are. Another warehouse needs these three and nothing else."""

    def versions(self) -> Mapping[str, int]:
        """Version of every table that is there; an absent table or warehouse is no error."""

    def changed_at(self) -> Mapping[str, int]:
        """When each of them last changed, epoch milliseconds, where that is known."""

    def query(self, sql: str, tables: Sequence[str], cap: int, parameters: Mapping[str, Parameter]) -> Rows:
        """At most `cap` rows of a query over `tables`, instants as epoch milliseconds; none if a table is absent.

        The query ends in `LIMIT $cap`.
        """


class LocalLake:
    """`<warehouse>/<table>` as written by the jobs. Safe for threads; answers are kept by (versions, query)."""

    def __init__(self, warehouse: str | Path, *, fresh_seconds: float = 1.0, kept: int = 256) -> None:
        self._warehouse = Path(warehouse)
        self._fresh_seconds = fresh_seconds
        self._kept = kept
        self._lock = Lock()
        self._looked_at: dict[str, float] = {}
        self._open: dict[str, tuple[int, DeltaTable]] = {}
        self._datasets: dict[str, tuple[int, Any]] = {}
        self._answers: OrderedDict[tuple[Any, ...], Rows] = OrderedDict()
        # A query can reach the registered tables only: no file, no network, no extension.
        self._duckdb = duckdb.connect(
            config={
                "enable_external_access": "false",
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
                "threads": 2,
                "memory_limit": "512MB",
            }
        )
        self._duckdb.execute("SET TimeZone = 'UTC'")

    def versions(self) -> Mapping[str, int]:
        with self._lock:
            self._look(table.name for table in TABLES)
            return {name: version for name, (version, _) in self._datasets.items()}

    def changed_at(self) -> Mapping[str, int]:
        with self._lock:
            return {name: int(open_[1].history(1)[0]["timestamp"]) for name, open_ in self._open.items()}

    def query(self, sql: str, tables: Sequence[str], cap: int, parameters: Mapping[str, Parameter]) -> Rows:
        with self._lock:
            self._look(tables)
            sources = {name: found for name in tables if (found := self._dataset(name)) is not None}
            if len(sources) < len(set(tables)):
                return Rows([], is_capped=False)
            key = (sql, cap, _frozen(parameters), tuple((name, version) for name, (version, _) in sources.items()))
            if (answer := self._answers.get(key)) is not None:
                self._answers.move_to_end(key)
                return answer
        answer = self._answer(sql, {name: dataset for name, (_, dataset) in sources.items()}, cap, parameters)
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > self._kept:
                self._answers.popitem(last=False)
        return answer

    def _answer(self, sql: str, sources: Mapping[str, Any], cap: int, parameters: Mapping[str, Parameter]) -> Rows:
        with self._duckdb.cursor() as cursor:
            for name, dataset in sources.items():
                cursor.register(name, dataset)
            found = milliseconds(cursor.sql(sql, params={**parameters, "cap": cap + 1}).to_arrow_table())
        return Rows(found.slice(0, cap).to_pylist(), is_capped=found.num_rows > cap)

    def _dataset(self, name: str) -> tuple[int, Any] | None:
        """Its version and files, which are listed only once somebody asks; None where there is no such table."""
        version, dataset = self._datasets.get(name, (0, None))
        if dataset is None and name in self._datasets:
            try:
                dataset = self._open[name][1].to_pyarrow_dataset()
            except (DeltaError, OSError):
                self._forget(name)
                return None
            self._datasets[name] = version, dataset
        return None if dataset is None else (version, dataset)

    def _look(self, names: Iterable[str]) -> None:
        """Whether there are newer versions, unless that was asked just now."""
        for name in names:
            if monotonic() - self._looked_at.get(name, float("-inf")) >= self._fresh_seconds:
                self._refresh(name)
                self._looked_at[name] = monotonic()

    def _refresh(self, name: str) -> None:
        try:
            # Another folder of the same name is another table, whatever its version number.
            identity = (self._warehouse / name / "_delta_log").stat().st_ino
            known, table = self._open.get(name, (None, None))
            if table is None or known != identity:
                table = DeltaTable(str(self._warehouse / name))
                self._open[name] = identity, table
                self._datasets.pop(name, None)
                self._answers.clear()
            else:
                table.update_incremental()
            if self._datasets.get(name, (None,))[0] != table.version():
                self._datasets[name] = (table.version(), None)
        except (DeltaError, OSError):
            # Not there, or just being made: it is absent until it can be opened.
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._open.pop(name, None)
        self._datasets.pop(name, None)


def _frozen(parameters: Mapping[str, Parameter]) -> tuple[Any, ...]:
    return tuple((k, v if isinstance(v, str | int | datetime) else tuple(v)) for k, v in sorted(parameters.items()))


def milliseconds(table: pa.Table) -> pa.Table:
    """Instants as numbers: milliseconds since the epoch."""
    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            whole = table.column(position).cast(pa.timestamp("ms", tz=field.type.tz), safe=False).cast(pa.int64())
            table = table.set_column(position, field.name, whole)
    return table
