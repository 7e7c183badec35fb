"""Silver from bronze: the groups that new bronze rows touch are rebuilt from their whole history and replaced.

Nothing here depends on how the rows arrived: bronze is immutable and `pipelines.silver` is a pure function, so a retry,
a late log line and a rebuild from scratch end in the same tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.delta_io import checkpoint_path, create_tables, replace_groups, table_path
from jobs.errors import UserError
from jobs.settings import Settings
from jobs.spark import session
from pipelines.silver.frame import silver, table_of
from schemas.bronze import BRONZE, COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.silver import SILVER
from schemas.tables import Table

INPUTS = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS)
Group = tuple[str, str]


def rebuild_all(spark: SparkSession, warehouse: Path, quiet_ms: int) -> None:
    """Every silver table again, from all of bronze; each is replaced in one commit."""
    create_tables(spark, warehouse, SILVER)
    rebuilt = _rebuilt(spark, warehouse, quiet_ms, None)
    try:
        for table in SILVER:
            rows = table_of(rebuilt, table)
            rows.write.format("delta").mode("overwrite").save(table_path(warehouse, table))
    finally:
        rebuilt.unpersist()


def rebuild_groups(spark: SparkSession, warehouse: Path, quiet_ms: int, groups: Sequence[Group]) -> None:
    """The silver rows of these (cluster, group_id), replaced table by table."""
    if not groups:
        return
    rebuilt = _rebuilt(spark, warehouse, quiet_ms, groups)
    try:
        for table in SILVER:
            replace_groups(table_of(rebuilt, table), table_path(warehouse, table), table, groups)
    finally:
        rebuilt.unpersist()


def touched(rows: DataFrame) -> list[Group]:
    """The groups that a frame with `cluster` and `group_id` is about."""
    found = rows.where(F.col("group_id").isNotNull()).select("cluster", "group_id").distinct().collect()
    return sorted((row.cluster, row.group_id) for row in found)


def _rebuilt(spark: SparkSession, warehouse: Path, quiet_ms: int, groups: Sequence[Group] | None) -> DataFrame:
    records, runs, events = (_history(spark, warehouse, table, groups) for table in INPUTS)
    return silver(records, runs, events, quiet_ms=quiet_ms).persist()


def _history(spark: SparkSession, warehouse: Path, table: Table, groups: Sequence[Group] | None) -> DataFrame:
    rows = spark.read.format("delta").load(table_path(warehouse, table))
    if groups is None:
        return rows
    clusters = sorted({cluster for cluster, _ in groups})
    of_cluster = (
        (F.col("cluster") == c) & F.col("group_id").isin([g for cluster, g in groups if cluster == c]) for c in clusters
    )
    return rows.where(reduce(lambda a, b: a | b, of_cluster))


def start(spark: SparkSession, settings: Settings, *, once: bool) -> None:
    """Follow bronze and rebuild what changes; with `once` until everything that is there has been built."""
    warehouse = settings.warehouse
    create_tables(spark, warehouse, (*BRONZE, *SILVER))
    streams = [
        spark.readStream.format("delta").load(table_path(warehouse, table)).select("cluster", "group_id")
        for table in INPUTS
    ]

    def build(batch: DataFrame, _: int) -> None:
        rebuild_groups(batch.sparkSession, warehouse, settings.quiet_ms, touched(batch))

    writer = (
        reduce(DataFrame.union, streams)
        .writeStream.foreachBatch(build)
        .option("checkpointLocation", str(checkpoint_path(warehouse, "build")))
    )
    trigger = {"availableNow": True} if once else {"processingTime": f"{settings.trigger_seconds} seconds"}
    writer.trigger(**trigger).start().awaitTermination()  # type: ignore[arg-type]


def run(settings: Settings, *, once: bool) -> int:
    """`regroup build`."""
    _known(settings.warehouse)
    start(session("regroup build", cores=settings.cores, driver_memory=settings.driver_memory), settings, once=once)
    return 0


def run_rebuild(settings: Settings) -> int:
    """`regroup rebuild`."""
    _known(settings.warehouse)
    spark = session("regroup rebuild", cores=settings.cores, driver_memory=settings.driver_memory)
    rebuild_all(spark, settings.warehouse, settings.quiet_ms)
    return 0


def _known(warehouse: Path) -> None:
    if not (warehouse / COORDINATOR_RECORDS.name / "_delta_log").is_dir():
        raise UserError(
            f"The warehouse {warehouse} has no table {COORDINATOR_RECORDS.name} yet: run `./regroup ingest` or "
            "`./regroup replay` first, or name another with --warehouse."
        )
