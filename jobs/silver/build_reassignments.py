"""The tables of reassignments from bronze: each affected cluster is rebuilt from a time without reassignments on."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from dashboards.lake.lake import milliseconds
from jobs.retention.retention import with_settled
from jobs.spark.checkpoint import place, start_over_unless
from jobs.spark.spark import for_few_rows, persisted
from jobs.states.kept import save_states
from jobs.tables.append import overwrite_frame
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path, follow, read
from jobs.tables.disk.durability import after_sync
from jobs.tables.engine import connect, show
from jobs.tables.replace import replace_rows
from jobs.tables.silver_rows import stored_rows
from pipelines.arrow_types import TYPES
from pipelines.reassignments.frame import (
    OF_INTEREST,
    affected_rows,
    cut,
    reassignments,
    reassignments_of_few,
    since_cut,
)
from pipelines.rows_of_tables import table_of
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS
from schemas.silver import REASSIGNMENT_TABLES, REASSIGNMENTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jobs.tables.new_rows import NewRows
    from schemas.tables import Table

INPUTS = (ADMIN_OBSERVATIONS, COORDINATOR_EVENTS)
CUTS = pa.schema([("cluster", TYPES["STRING"]), ("cut_at", TYPES["TIMESTAMP"])])


def rebuild_all_reassignments(spark: SparkSession, warehouse: Path) -> None:
    """Rebuild both tables from all of bronze, each in one commit. Rows that were over before its start are kept."""
    create_tables(spark, warehouse, REASSIGNMENT_TABLES)
    with persisted(reassignments(*(read(spark, warehouse, table) for table in INPUTS))) as rebuilt:
        for table in REASSIGNMENT_TABLES:
            rows = partial(with_settled, spark, warehouse, table_of(rebuilt, table), table)
            overwrite_frame(rows, warehouse, table)


def rebuild_affected_reassignments(spark: SparkSession | None, warehouse: Path, new: Mapping[Table, NewRows]) -> None:
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
    start_over_unless(progress, warehouse, INPUTS)
    new = [spark.sql(affected_rows(table, "{rows}"), rows=follow(spark, warehouse, table)) for table in INPUTS]

    def build(batch: DataFrame, _: int) -> None:
        save_states(warehouse)
        rebuild_since(batch.sparkSession, warehouse, batch.groupBy("cluster").agg(F.min("since_at")).toArrow())

    return (
        reduce(DataFrame.union, new)
        .writeStream.foreachBatch(after_sync(progress, build))
        .option("checkpointLocation", place(progress))
        .trigger(**trigger)
        .start()
    )


def rebuild_since(spark: SparkSession | None, warehouse: Path, earliest: pa.Table) -> None:
    """Rebuild what new rows may change. `earliest` has each cluster and the timestamp of its earliest new row."""
    if not earliest.num_rows:
        return
    few = spark and for_few_rows(spark)
    cuts = _cuts(warehouse, dict(zip(*earliest.to_pydict().values(), strict=True)))
    rebuilt = reassignments_of_few(*_inputs(warehouse, cuts))
    # `reassignments` is written last: it determines the start of a rebuild, so after a crash the old start still holds.
    for table in reversed(REASSIGNMENT_TABLES):
        old = stored_rows(warehouse, table, table.names, where=_of(cuts))
        replace_rows(few, warehouse, table, _since(old, table, cuts), _since(rebuilt[table], table, cuts))


def _cuts(warehouse: Path, since: Mapping[str, datetime]) -> dict[str, datetime]:
    columns = ("cluster", "started_at", "started_at_earliest", "completed_at")
    spans = stored_rows(warehouse, REASSIGNMENTS, columns, where=_of(since)).to_pylist()
    return {
        cluster: cut(
            at,
            [
                (s["started_at_earliest"] or s["started_at"], s["completed_at"])
                for s in spans
                if s["cluster"] == cluster
            ],
        )
        for cluster, at in since.items()
    }


def _inputs(warehouse: Path, cuts: Mapping[str, datetime]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of `INPUTS` that a rebuild from the cuts needs, with timestamps in ms."""
    rows = [{"cluster": cluster, "cut_at": at} for cluster, at in cuts.items()]
    with connect() as engine:
        engine.register("cuts", pa.Table.from_pylist(rows, CUTS))
        for table in INPUTS:
            show(engine, table.name, warehouse, table, where=OF_INTEREST[table])
            yield milliseconds(engine.sql(since_cut(table)).to_arrow_table()).to_pylist()


def _of(clusters: Collection[str]) -> pc.Expression:
    return pc.field("cluster").isin(pa.array(sorted(clusters), pa.string()))


def _since(rows: pa.Table, table: Table, cuts: Mapping[str, datetime]) -> pa.Table:
    time = "started_at" if table is REASSIGNMENTS else "observed_at"
    kept = [
        pc.and_(pc.equal(rows["cluster"], cluster), pc.greater_equal(rows[time], at)) for cluster, at in cuts.items()
    ]
    return rows.filter(reduce(pc.or_, kept))
