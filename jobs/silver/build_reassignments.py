"""The tables of reassignments from bronze: each affected cluster is rebuilt from a time without reassignments on."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.retention.retention import with_settled
from jobs.spark.checkpoint import start_over_unless
from jobs.spark.spark import for_few_rows
from jobs.tables.append import overwrite_frame
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path, follow, read, table_path
from jobs.tables.engine import connect
from jobs.tables.replace import replace_rows
from jobs.tables.transactions import retry_commit
from pipelines.reassignments.frame import affected_rows, cut, reassignments, since_cut
from pipelines.rows_of_tables import rows_of, table_of
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS
from schemas.silver import REASSIGNMENT_TABLES, REASSIGNMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jobs.tables.new_rows import NewRows
    from schemas.tables import Table

INPUTS = (ADMIN_OBSERVATIONS, COORDINATOR_EVENTS)


def rebuild_all_reassignments(spark: SparkSession, warehouse: Path) -> None:
    """Rebuild both tables from all of bronze, each in one commit. Rows that were over before its start are kept."""
    create_tables(spark, warehouse, REASSIGNMENT_TABLES)
    rebuilt = reassignments(*(read(spark, warehouse, table) for table in INPUTS)).persist()
    try:
        for table in REASSIGNMENT_TABLES:
            rows = with_settled(spark, warehouse, table_of(rebuilt, table), table)
            path = table_path(warehouse, table)
            retry_commit(path, partial(overwrite_frame, rows, path), by_spark=True)
    finally:
        rebuilt.unpersist()


def rebuild_affected_reassignments(spark: SparkSession, warehouse: Path, new: Mapping[Table, NewRows]) -> None:
    """Update both tables for new bronze rows that bronze already holds. Only rows of `INPUTS` matter."""
    tables = [table for table in INPUTS if table in new]
    if not tables:
        return
    with connect() as engine:
        for table in tables:
            new[table].show(engine)
        changes = " UNION ALL ".join(affected_rows(table, table.name) for table in tables)
        earliest = engine.sql(
            f"SELECT cluster, min(since_at) FROM ({changes}) affected GROUP BY cluster"  # noqa: S608 - our own names
        ).to_arrow_table()
    rebuild_since(spark, warehouse, earliest)


def start_reassignments(spark: SparkSession, warehouse: Path, trigger: Mapping[str, Any]) -> StreamingQuery:
    """Follow bronze and rebuild the affected clusters."""
    progress = checkpoint_path(warehouse, "build-reassignments")
    start_over_unless(progress, [table_path(warehouse, table) for table in INPUTS])
    new = [spark.sql(affected_rows(table, "{rows}"), rows=follow(spark, warehouse, table)) for table in INPUTS]

    def build(batch: DataFrame, _: int) -> None:
        rebuild_since(batch.sparkSession, warehouse, batch.groupBy("cluster").agg(F.min("since_at")).toArrow())

    return (
        reduce(DataFrame.union, new)
        .writeStream.foreachBatch(build)
        .option("checkpointLocation", str(progress))
        .trigger(**trigger)
        .start()
    )


def rebuild_since(spark: SparkSession, warehouse: Path, earliest: pa.Table) -> None:
    """Rebuild what new rows may change. `earliest` has each cluster and the timestamp of its earliest new row."""
    if not earliest.num_rows:
        return
    spark = for_few_rows(spark)
    cuts = _cuts(spark, warehouse, dict(zip(*earliest.to_pydict().values(), strict=True)))
    inputs = [since_cut(read(spark, warehouse, table), table, cuts) for table in INPUTS]
    rebuilt = reassignments(*inputs).toArrow()
    # `reassignments` is written last: it determines the start of a rebuild, so after a crash the old start still holds.
    for table in reversed(REASSIGNMENT_TABLES):
        old = read(spark, warehouse, table).where(F.col("cluster").isin(*cuts)).toArrow()
        path = table_path(warehouse, table)
        replace_rows(spark, _since(old, table, cuts), _since(rows_of(rebuilt, table), table, cuts), path, table)


def _cuts(spark: SparkSession, warehouse: Path, since: dict[str, datetime]) -> dict[str, datetime]:
    known = read(spark, warehouse, REASSIGNMENTS).where(F.col("cluster").isin(*since))
    started = F.coalesce("started_at_earliest", "started_at").alias("started_at")
    spans = known.select("cluster", started, "completed_at").toArrow().to_pylist()
    return {
        cluster: cut(at, [(s["started_at"], s["completed_at"]) for s in spans if s["cluster"] == cluster])
        for cluster, at in since.items()
    }


def _since(rows: pa.Table, table: Table, cuts: Mapping[str, datetime]) -> pa.Table:
    time = "started_at" if table is REASSIGNMENTS else "observed_at"
    kept = [
        pc.and_(pc.equal(rows["cluster"], cluster), pc.greater_equal(rows[time], at)) for cluster, at in cuts.items()
    ]
    return rows.filter(reduce(pc.or_, kept))
