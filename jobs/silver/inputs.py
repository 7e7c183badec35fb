"""What a batch needs of bronze and silver as they stand: DuckDB reads it on a machine of one's own and of few groups
anywhere, else Spark.

Of few groups, planning a read of Delta takes Spark longer than all there is to read. Either way only those rows come to
the driver that a batch may replace, however long the groups' history is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.silver.pending_first_commits import GROUP, pending_first_commits
from jobs.silver.pruned_commits import pruned_commits
from jobs.tables.delta_io import read, table_path
from jobs.tables.engine import connect, show
from jobs.tables.silver_rows import instant, milliseconds_of
from jobs.tables.since_points import ASTRAY_MS, of_groups, since_points
from jobs.tables.transactions import is_local
from pipelines.arrow_types import TYPES, schema_of
from pipelines.silver.frame import INPUTS
from pipelines.silver.resume_points import (
    COMMITTING,
    RESTARTS,
    after_base,
    committing,
    from_base,
    replaced,
    resume_points,
    since_base,
)
from schemas.silver import GENERATION_MEMBERS, GROUPS, REBALANCES, STALLS
from schemas.tables import Table

FEW_GROUPS = 5_000
"""Up to so many, their rows fit into the driver, which finds them sooner than Spark plans to."""

FEW_ROWS = 200_000
"""So many rows of bronze are rebuilt in the driver, in 25 us each, not a long history that is read for the first time.
Spark takes seconds before it begins, the most where a batch is late already and therefore large.
"""

LATELY_MS = 3_600_000
"""Most groups that rebalance did so within the hour before."""

NAMED = {name: name for name in ("touched", "groups", "stalls", "members", "rebalances")}
"""Views of DuckDB's."""


class Frames(NamedTuple):
    """Rows of bronze that Spark is to rebuild silver from."""

    records: DataFrame
    runs: DataFrame
    events: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SilverInputs:
    """The rows of a warehouse's tables for the groups in `touched`, whose columns `resume_points.committing` reads."""

    spark: SparkSession
    warehouse: Path
    touched: pa.Table

    @property
    def is_local(self) -> bool:
        """Whether the tables are files that DuckDB reads, in this process and in those of tasks."""
        return is_local(table_path(self.warehouse, GROUPS))

    @property
    def by_duckdb(self) -> bool:
        return int(self.touched.num_rows) <= FEW_GROUPS or self.is_local

    def committing(self) -> tuple[pa.Table, pa.Table]:
        """Return the old and new rows of `groups` for groups that only committed (`resume_points.committing`)."""
        kind = schema_of(GROUPS)
        told = self.touched.filter(pc.is_valid(self.touched["last_commit_at"]))
        if not told.num_rows:
            return kind.empty_table(), kind.empty_table()
        if self.by_duckdb:
            with connect() as engine:
                engine.register("touched", self.touched)
                engine.register("stalls", pending_first_commits(self.warehouse, told))
                show(engine, "groups", self.warehouse, GROUPS)
                show(engine, "members", self.warehouse, GENERATION_MEMBERS)
                new = engine.sql(COMMITTING.format(**NAMED)).to_arrow_table()
            return of_groups(self.warehouse, GROUPS, new.select(GROUP)), new.cast(kind)
        groups, stalls, members = (self._read(table) for table in (GROUPS, STALLS, GENERATION_MEMBERS))
        new = committing(self.spark.createDataFrame(self.touched), groups, stalls, members).toArrow()
        told = F.broadcast(self.spark.createDataFrame(new.select(GROUP)))
        old = groups.join(told, GROUP, "left_semi").select(*GROUPS.names).toArrow() if new.num_rows else new
        return old, new

    def restarts(self) -> pa.Table:
        """Where the history of each group may be taken up again (`resume_points.resume_points`)."""
        touched = self.touched.select([*GROUP, "since_at", "has_classic", "has_modern"])
        if not self.by_duckdb:
            new = self.spark.createDataFrame(touched)
            return resume_points(new, self._read(REBALANCES), self._read(GROUPS)).toArrow()
        if not touched.num_rows:
            return self._restarts(touched)
        # For groups that did not, and where a coordinator's clock may have put a later one before it, all is looked
        # through.
        begin = milliseconds_of(pc.max(touched["since_at"])) - LATELY_MS
        found = self._restarts(touched, begin)
        is_sure = pc.fill_null(pc.greater(found["base_at"], instant(begin + ASTRAY_MS)), fill_value=False)
        sure = found.filter(is_sure)
        if sure.num_rows == found.num_rows:
            return found
        rest = touched.join(sure.select(GROUP), GROUP, join_type="left anti")
        return pa.concat_tables([sure, self._restarts(rest)])

    def _restarts(self, touched: pa.Table, begin_ms: int | None = None) -> pa.Table:
        """As rebalances tell that started since, with some before."""
        since = (REBALANCES.time, begin_ms) if REBALANCES.time and begin_ms is not None else None
        with connect() as engine:
            engine.register("touched", touched)
            show(engine, "rebalances", self.warehouse, REBALANCES, since)
            show(engine, "groups", self.warehouse, GROUPS)
            found = engine.sql(RESTARTS.format(**NAMED)).to_arrow_table()
        # Of an earlier Regroup, whose instants name no zone.
        utc = TYPES["TIMESTAMP"]
        kinds = [field.with_type(utc) if pa.types.is_timestamp(field.type) else field for field in found.schema]
        return found.cast(pa.schema(kinds))

    def history(self, points: pa.Table) -> dict[str, pa.Table] | None:
        """Return the rows of bronze that a rebuild from `points` needs, by their names in `INPUTS`; of commits only
        those that silver depends on. `points` is what `resume_points` returned. None: too many rows to read here.
        """
        found: dict[str, pa.Table] = {}
        if not self.by_duckdb:
            return None
        for name, table in INPUTS.items():
            found[name] = since_points(self.warehouse, table, points, from_base(table), most=FEW_ROWS)
            if found[name].num_rows > FEW_ROWS:
                return None
        return found | {"run": pruned_commits(found["run"], found["record"])}

    def frames(self, points: pa.Table) -> Frames:
        """The same as Spark reads them, however many they are."""
        stand = self.spark.createDataFrame(points)
        return Frames(*(since_base(self._read(table), table, stand) for table in INPUTS.values()))

    def replaced(self, table: Table, points: pa.Table) -> pa.Table:
        """The rows of a silver table that a rebuild from `points` replaces."""
        if self.by_duckdb:
            return since_points(self.warehouse, table, points, after_base(table))
        return replaced(self._read(table), table, self.spark.createDataFrame(points)).toArrow()

    def _read(self, table: Table) -> DataFrame:
        return read(self.spark, self.warehouse, table)
