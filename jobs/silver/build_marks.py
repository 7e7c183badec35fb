"""The table `marks` from bronze: for the time span of new marks, its rows are rebuilt from all observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.retention.retention import kept_since
from jobs.spark.checkpoint import place, start_over_unless
from jobs.spark.spark import for_few_rows
from jobs.states.kept import save_states
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path, follow
from jobs.tables.disk.durability import after_sync
from jobs.tables.engine import connect
from jobs.tables.new_rows import NewRows
from jobs.tables.replace import replace_rows
from jobs.tables.silver_rows import stored_rows, timestamp_scalar
from pipelines.arrow_types import row_type
from pipelines.kubernetes.pod_facts import KIND
from pipelines.marks import mark_rows
from schemas.bronze import ADMIN_OBSERVATIONS
from schemas.gold import MARKS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

KINDS = ("mark", KIND)
IS_MARK = f"kind IN {KINDS}"
ANNOUNCED = ("cluster", "observed_at", "kind", "body")
SPANS = (
    "SELECT cluster, epoch_ms(min(observed_at)), epoch_ms(max(observed_at)) FROM admin_observations "  # noqa: S608 - our own names
    f"WHERE {IS_MARK} GROUP BY cluster"
)


def rebuild_all_marks(spark: SparkSession, warehouse: Path) -> None:
    """Rebuild the table from all of bronze. Marks from before the start of bronze are kept."""
    create_tables(spark, warehouse, (MARKS,))
    since = kept_since(warehouse, ADMIN_OBSERVATIONS)
    known = stored_rows(warehouse, MARKS, MARKS.names, since=None if since is None else ("marked_at", since))
    _replace(spark, warehouse, _announced(warehouse), known)


def update_marks(spark: SparkSession | None, warehouse: Path, new: NewRows) -> None:
    """Update the table for new rows of `admin_observations` that bronze already holds."""
    with connect() as engine:
        new.show(engine)
        spans = engine.sql(SPANS).fetchall()
    few = spark and for_few_rows(spark)
    for cluster, first, last in spans:
        is_its = pc.field("cluster") == cluster
        # A millisecond more, because the limits of the new rows are rounded down.
        seen, known = (is_its & (pc.field(time) < timestamp_scalar(last + 1)) for time in ("observed_at", "marked_at"))
        stored = stored_rows(warehouse, MARKS, MARKS.names, where=known, since=("marked_at", first))
        _replace(few, warehouse, _announced(warehouse, seen, ("observed_at", first)), stored)


def start_marks(spark: SparkSession, warehouse: Path, trigger: Mapping[str, Any]) -> StreamingQuery:
    """Follow bronze and update the table."""
    create_tables(spark, warehouse, (MARKS,))
    progress = checkpoint_path(warehouse, "build-marks")
    start_over_unless(progress, warehouse, (ADMIN_OBSERVATIONS,))

    def build(batch: DataFrame, _: int) -> None:
        save_states(warehouse)
        marks = NewRows.of_frame(ADMIN_OBSERVATIONS, batch.where(IS_MARK))
        update_marks(batch.sparkSession, warehouse, marks)

    return (
        follow(spark, warehouse, ADMIN_OBSERVATIONS)
        .writeStream.foreachBatch(after_sync(progress, build))
        .option("checkpointLocation", place(progress))
        .trigger(**trigger)
        .start()
    )


def _announced(
    warehouse: Path, where: pc.Expression | None = None, since: tuple[str, int] | None = None
) -> list[dict[str, Any]]:
    """Return the stored observations that announce marks or report changes of pods."""
    is_mark = pc.field("kind").isin(list(KINDS))
    chosen = is_mark if where is None else is_mark & where
    found = stored_rows(warehouse, ADMIN_OBSERVATIONS, ANNOUNCED, where=chosen, since=since)
    out: list[dict[str, Any]] = found.to_pylist()
    return out


def _replace(spark: SparkSession | None, warehouse: Path, seen: list[dict[str, Any]], known: pa.Table) -> None:
    rows = pa.Table.from_struct_array(pa.array(mark_rows(seen), row_type(MARKS)))
    replace_rows(spark, warehouse, MARKS, known, rows)
