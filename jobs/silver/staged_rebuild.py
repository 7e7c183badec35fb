"""Rebuilds silver tables that are elsewhere with Spark, through a staging table. The driver holds none of the rows.

All rebuilt rows are written to the staging table, and each silver table is merged from there in one statement. A batch
that is ended in between is repeated as a whole: it reads the same resume points, because they are merged last, makes
the same rows, and finds nothing to change in the tables that were merged already.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.retention.retention import unsettled_frames, with_settled
from jobs.silver.inputs import Frames, SilverInputs
from jobs.silver.pending_first_commits import GROUP
from jobs.silver.silver_tasks import Making
from jobs.silver.staging import StagedRows
from jobs.tables.append import overwrite_frame
from jobs.tables.delta_io import required
from jobs.tables.merge_frames import Sides, merge_frames
from jobs.tables.named_tables import not_before
from jobs.tables.replace import PRUNED_GROUPS
from jobs.tables.since_points import since_earliest
from pipelines.silver.frame import silver
from schemas.silver import GROUPS
from schemas.tables import Table


def silver_frame(history: Frames, making: Making, points: pa.Table | None = None) -> DataFrame:
    """Return the silver rows of these groups, in the columns of `pipelines.silver.frame.silver`."""
    spark = history.records.sparkSession
    return silver(
        *history,
        quiet_ms=making.quiet_ms,
        hosts=making.hosts,
        restarts=None if points is None else spark.createDataFrame(points),
        topic_names=making.topic_names,
        partition_counts=making.partition_counts,
        name_bytes=making.name_bytes,
    )


class StagedRebuild:
    """The rows of one batch in the staging table, rebuilt from `points` (`resume_points.resume_points`)."""

    def __init__(self, inputs: SilverInputs, points: pa.Table, making: Making) -> None:
        self._inputs, self._points = inputs, points
        rows = silver_frame(inputs.frames(points), making, points)
        self._staged = StagedRows.write(required(inputs.spark), inputs.warehouse, rows)

    def merge(self, table: Table, committing: tuple[pa.Table, pa.Table]) -> None:
        """Replace the rows of the table after the points of their groups by the rebuilt ones.

        `committing` has old and new rows of further groups in the table `groups`.
        """
        warehouse, spark = self._inputs.warehouse, self._staged.spark
        where = self._pruned(table)

        def sides() -> Sides:
            old = self._inputs.replaced_frame(table, self._points)
            new = self._staged.of(table)
            if table is GROUPS and committing[1].num_rows:
                before, after = (spark.createDataFrame(rows.select(table.names)) for rows in committing)
                old, new = old.select(*table.names).unionByName(before), new.unionByName(after)
            return unsettled_frames(warehouse, old, new, table)

        merge_frames(warehouse, table, sides, where)

    def _pruned(self, table: Table) -> Sequence[Column]:
        since = since_earliest(table, self._points)
        found = [] if since is None else [not_before(*since)]
        if table is not GROUPS and self._points.num_rows <= PRUNED_GROUPS:
            found += [F.col(name).isin(sorted(set(self._points[name].to_pylist()))) for name in GROUP]
        return found


def overwrite_all(spark: SparkSession, warehouse: Path, rows: DataFrame, tables: Sequence[Table]) -> None:
    """Overwrite these tables by rows rebuilt from all of bronze (`silver_frame`), without rows that must be kept."""
    staged = StagedRows.write(spark, warehouse, rows)
    for table in tables:
        overwrite_frame(partial(with_settled, spark, warehouse, staged.of(table), table), warehouse, table)
