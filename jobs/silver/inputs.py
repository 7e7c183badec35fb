"""A batch's input from bronze and silver: read by DuckDB in local mode and for few groups, else by Spark.

For few groups, Spark plans a read of Delta for longer than the read takes. Tables that are not in the warehouse's
folder are always read by Spark. Either way, the driver gets only the rows that a batch may replace, regardless of the
length of the groups' history; of tables elsewhere, it gets none if they are many (`staged_rebuild`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.silver.pending_first_commits import GROUP, pending_first_commits
from jobs.silver.rebuilt_rows import rebuilt_rows
from jobs.tables.create_tables import needs_spark
from jobs.tables.delta_io import read, required
from jobs.tables.engine import connect, show
from jobs.tables.location import is_elsewhere
from jobs.tables.named_tables import not_before
from jobs.tables.silver_rows import milliseconds_of, timestamp_scalar
from jobs.tables.since_points import ASTRAY_MS, of_groups, since_earliest, since_points
from pipelines.arrow_types import TYPES, schema_of
from pipelines.silver.commits.pruned_commits import pruned_commits
from pipelines.silver.frame import INPUTS
from pipelines.silver.resume_points import (
    COMMITTING,
    committing,
    from_base,
    replaced,
    restarts,
    resume_points,
    since_base,
)
from schemas.silver import GENERATION_MEMBERS, GROUPS, REBALANCES, RESUME_POINTS, STALLS
from schemas.tables import Table

FEW_GROUPS = 5_000
"""Number of groups up to which DuckDB reads their rows in the driver. The rows fit, and Spark would plan for longer."""

FEW_ROWS = 200_000
"""Number of bronze rows up to which they are rebuilt in the driver, at 25 us each. A first read of a long history has
more. Spark or other processes take seconds to start, and the most for a late and therefore large batch.
"""

LATELY_MS = 3_600_000
"""Time in ms before a change in which most groups had their last rebalance."""

POINTS_MS = 900_000
"""Time in ms before a change in which a group that never rests began two blocks: three `valid_points.EVERY_MS`."""

NEW_INPUT = ("since_at", "has_classic", "has_modern", "until_at", "last_generation_id")
"""Columns of `affected_groups.by_group` that `resume_points.restarts` reads."""

NAMED = {name: name for name in ("affected", "groups", "stalls", "members", "rebalances", "resume_points")}
"""Names of DuckDB's views in the SQL texts."""


class Frames(NamedTuple):
    """Rows of bronze from which Spark rebuilds silver."""

    records: DataFrame
    runs: DataFrame
    events: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SilverInputs:
    """The input for the groups in `affected`, whose columns `resume_points.committing` reads.

    In local mode, `spark` may be None.
    """

    spark: SparkSession | None
    warehouse: Path
    affected: pa.Table

    @property
    def is_local(self) -> bool:
        """Return whether the tables are files that DuckDB reads, in this process and in tasks."""
        return not needs_spark(self.warehouse, (GROUPS,))

    @property
    def by_duckdb(self) -> bool:
        return not is_elsewhere(self.warehouse) and (int(self.affected.num_rows) <= FEW_GROUPS or self.is_local)

    def committing(self) -> tuple[pa.Table, pa.Table]:
        """Return the old and new rows of `groups` for groups that only committed (`resume_points.committing`)."""
        kind = schema_of(GROUPS)
        committed = self.affected.filter(pc.is_valid(self.affected["last_commit_at"]))
        if not committed.num_rows:
            return kind.empty_table(), kind.empty_table()
        if self.by_duckdb:
            with connect() as engine:
                engine.register("affected", self.affected)
                engine.register("stalls", pending_first_commits(self.warehouse, committed))
                show(engine, "groups", self.warehouse, GROUPS)
                show(engine, "members", self.warehouse, GENERATION_MEMBERS)
                new = engine.sql(COMMITTING.format(**NAMED)).to_arrow_table()
            return of_groups(self.warehouse, GROUPS, new.select(GROUP)), new.cast(kind)
        groups, stalls, members = (self._read(table) for table in (GROUPS, STALLS, GENERATION_MEMBERS))
        new = committing(self._frame(self.affected), groups, stalls, members).toArrow()
        committed = F.broadcast(self._frame(new.select(GROUP)))
        old = groups.join(committed, GROUP, "left_semi").select(*GROUPS.names).toArrow() if new.num_rows else new
        return old, new

    def restarts(self) -> pa.Table:
        """Return the point from which each group's history can be rebuilt (`resume_points.resume_points`)."""
        affected = self.affected.select([*GROUP, *NEW_INPUT])
        if not self.by_duckdb:
            rebalances, groups, points = (self._read(table) for table in (REBALANCES, GROUPS, RESUME_POINTS))
            return resume_points(self._frame(affected), rebalances, groups, points).toArrow()
        if not affected.num_rows:
            return self._restarts(affected)
        # A second scan without a time limit finds older rebalances, and those that a coordinator's clock may have
        # misplaced.
        begin = milliseconds_of(pc.max(affected["since_at"])) - LATELY_MS
        found = self._restarts(affected, begin)
        is_sure = pc.fill_null(pc.greater(found["base_at"], timestamp_scalar(begin + ASTRAY_MS)), fill_value=False)
        sure = found.filter(is_sure)
        if sure.num_rows == found.num_rows:
            return found
        rest = affected.join(sure.select(GROUP), GROUP, join_type="left anti")
        return pa.concat_tables([sure, self._restarts(rest)])

    def _restarts(self, affected: pa.Table, begin_ms: int | None = None) -> pa.Table:
        """Read rebalances and points since `begin_ms`; rows before it may be included."""
        with connect() as engine:
            engine.register("affected", affected)
            for table, later_ms in ((REBALANCES, 0), (RESUME_POINTS, LATELY_MS - POINTS_MS)):
                since = (table.time, begin_ms + later_ms) if table.time and begin_ms is not None else None
                show(engine, table.name, self.warehouse, table, since)
            show(engine, "groups", self.warehouse, GROUPS)
            found = engine.sql(restarts().format(**NAMED)).to_arrow_table()
        # Timestamps of an earlier version of Regroup have no zone.
        utc = TYPES["TIMESTAMP"]
        kinds = [field.with_type(utc) if pa.types.is_timestamp(field.type) else field for field in found.schema]
        return found.cast(pa.schema(kinds))

    def history(self, points: pa.Table) -> dict[str, pa.Table] | None:
        """Return the rows of bronze that a rebuild from `points` needs, by their names in `INPUTS`; None if they are
        too many.

        `points` is the result of `resume_points`. Commits that do not affect silver are left out.
        """
        found: dict[str, pa.Table] = {}
        if not self.by_duckdb:
            return None
        for name, table in INPUTS.items():
            found[name] = since_points(self.warehouse, table, points, from_base(table), most=FEW_ROWS)
            if found[name].num_rows > FEW_ROWS:
                return None
        return found | {"run": pruned_commits(found["run"], found["record"])}

    def has_few_rows(self, points: pa.Table) -> bool:
        """Return whether a rebuild from `points` needs so few rows of bronze that the driver can hold what it makes.

        Spark counts them.
        """
        needed = reduce(DataFrame.unionAll, (rows.select(F.lit(1)) for rows in self.frames(points)))
        return needed.limit(FEW_ROWS + 1).count() <= FEW_ROWS

    def frames(self, points: pa.Table) -> Frames:
        """Return the same rows as Spark frames, for any number of rows."""
        point_frame = self._frame(points)
        return Frames(*(since_base(self._late(table, points), table, point_frame) for table in INPUTS.values()))

    def replaced(self, table: Table, points: pa.Table) -> pa.Table:
        """Return the rows of a silver table that a rebuild from `points` replaces."""
        if self.by_duckdb:
            return rebuilt_rows(self.warehouse).since(table, points)
        return self.replaced_frame(table, points).toArrow()

    def replaced_frame(self, table: Table, points: pa.Table) -> DataFrame:
        """Return the same rows as a Spark frame."""
        return replaced(self._late(table, points), table, self._frame(points))

    def _late(self, table: Table, points: pa.Table) -> DataFrame:
        """Return a table without rows before all of the points. Delta skips files by their times."""
        since = since_earliest(table, points)
        return self._read(table) if since is None else self._read(table).where(not_before(*since))

    def _read(self, table: Table) -> DataFrame:
        return read(required(self.spark), self.warehouse, table)

    def _frame(self, rows: pa.Table) -> DataFrame:
        return required(self.spark).createDataFrame(rows)
