"""The table `marks` from bronze: for the time span of new marks, its rows are rebuilt from all observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.retention.retention import kept_since
from jobs.spark.checkpoint import start_over_unless
from jobs.spark.spark import for_few_rows
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path, follow, read, table_path
from jobs.tables.engine import connect
from jobs.tables.new_rows import NewRows
from jobs.tables.replace import replace_rows
from pipelines.arrow_types import row_type
from pipelines.marks import mark_rows
from schemas.bronze import ADMIN_OBSERVATIONS
from schemas.gold import MARKS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

IS_MARK = "kind = 'mark'"
SPANS = f"SELECT cluster, min(observed_at), max(observed_at) FROM admin_observations WHERE {IS_MARK} GROUP BY cluster"  # noqa: S608 - our own names


def rebuild_all_marks(spark: SparkSession, warehouse: Path) -> None:
    """Rebuild the table from all of bronze. Marks from before the start of bronze are kept."""
    create_tables(spark, warehouse, (MARKS,))
    known = read(spark, warehouse, MARKS)
    if (since := kept_since(warehouse, ADMIN_OBSERVATIONS)) is not None:
        known = known.where(F.unix_millis("marked_at") >= since)
    _replace(spark, warehouse, read(spark, warehouse, ADMIN_OBSERVATIONS), known)


def update_marks(spark: SparkSession, warehouse: Path, new: NewRows) -> None:
    """Update the table for new rows of `admin_observations` that bronze already holds."""
    with connect() as engine:
        new.show(engine)
        spans = engine.sql(SPANS).to_arrow_table()
    spark = for_few_rows(spark)
    for cluster, first, last in zip(*spans.to_pydict().values(), strict=True):
        seen, known = read(spark, warehouse, ADMIN_OBSERVATIONS), read(spark, warehouse, MARKS)
        _replace(
            spark,
            warehouse,
            seen.where((F.col("cluster") == cluster) & F.col("observed_at").between(first, last)),
            known.where((F.col("cluster") == cluster) & F.col("marked_at").between(first, last)),
        )


def start_marks(spark: SparkSession, warehouse: Path, trigger: Mapping[str, Any]) -> StreamingQuery:
    """Follow bronze and update the table."""
    create_tables(spark, warehouse, (MARKS,))
    progress = checkpoint_path(warehouse, "build-marks")
    start_over_unless(progress, [table_path(warehouse, ADMIN_OBSERVATIONS)])

    def build(batch: DataFrame, _: int) -> None:
        marks = NewRows.of_frame(ADMIN_OBSERVATIONS, batch.where(IS_MARK))
        update_marks(batch.sparkSession, warehouse, marks)

    return (
        follow(spark, warehouse, ADMIN_OBSERVATIONS)
        .writeStream.foreachBatch(build)
        .option("checkpointLocation", str(progress))
        .trigger(**trigger)
        .start()
    )


def _replace(spark: SparkSession, warehouse: Path, seen: DataFrame, known: DataFrame) -> None:
    observations = seen.where(IS_MARK).select("cluster", "observed_at", "body").toArrow().to_pylist()
    rows = pa.Table.from_struct_array(pa.array(mark_rows(observations), row_type(MARKS)))
    replace_rows(spark, known.select(*MARKS.names).toArrow(), rows, table_path(warehouse, MARKS), MARKS)
