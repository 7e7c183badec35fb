"""Queries on the rows of one cluster, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards.lake.lake import milliseconds, moment
from jobs.tables import named_tables
from jobs.tables.engine import connect, show
from jobs.tables.table_facts import exists
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.tables import Table

WRITTEN = """
SELECT epoch_ms(min(record_at)) FROM found
WHERE cluster = $cluster AND source_partition = $partition AND record_at > $since
"""
COMMITTED = """
SELECT epoch_ms(min(CASE WHEN first_commit_at > $since THEN first_commit_at
                         WHEN before_last_commit_at > $since THEN before_last_commit_at ELSE last_commit_at END))
FROM found WHERE cluster = $cluster AND source_partition = $partition AND last_commit_at > $since
"""


@dataclass(frozen=True, slots=True)
class ClusterReader:
    """Reads the rows of one cluster. A missing table has no rows."""

    warehouse: Path
    cluster: str

    def rows(self, table: Table, sql: str, *, since: tuple[str, int] | None = None, **values: Any) -> list[Any]:
        """Return the rows of a query on the view `found`, the table, with times in ms. `$since` is the time given."""
        if not exists(self.warehouse, table):
            return []
        asked = {"cluster": self.cluster, **values} | ({"since": moment(since[1])} if since else {})
        with connect() as engine:
            show(engine, "found", self.warehouse, table, since, where=named_tables.of_cluster(self.cluster))
            found: list[Any] = milliseconds(engine.sql(sql, params=asked).to_arrow_table()).to_pylist()
        return found

    def first(self, table: Table, sql: str, *, since: tuple[str, int] | None = None, **values: Any) -> int | None:
        """Return the only number of a query as `rows` has it; None if it has none."""
        found = self.rows(table, sql, since=since, **values)
        return next(iter(found[0].values())) if found else None

    def written_after(self, partition: int, ms: int) -> int | None:
        """Return the time of the first record after `ms` in a partition of `__consumer_offsets`, as far as runs of
        commits show it; None if there is none.
        """
        records = self.first(COORDINATOR_RECORDS, WRITTEN, since=("record_at", ms), partition=partition)
        commits = self.first(OFFSET_COMMITS, COMMITTED, since=("last_commit_at", ms), partition=partition)
        return min((at for at in (records, commits) if at is not None), default=None)
