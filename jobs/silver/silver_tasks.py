"""Builds silver from rows of bronze in memory, and in local mode from many groups in tasks.

Each task reads the bronze files for some of the groups, and may write the tables' data files itself. The same rows take
several times as long through Spark's sort, its cache and the JVM. Spark runs the tasks if its session has executors.
Otherwise a pool of processes does, or this process runs few of them one after the other. The Python workers of a local
session would keep what the tasks took, 80 MB each, because they also read Kafka and never end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dashboards.lake.lake import milliseconds
from jobs.config.settings import Settings
from jobs.processes.spawned_pool import spawned_pool
from jobs.spark.session_provider import provider
from jobs.spark.spark import tasks_at_once
from jobs.tables.engine import connect, disable_file_cache, quoted, show, use_one_thread
from jobs.tables.memory import no_collection
from jobs.tables.new_rows import NewRows, collected
from jobs.tables.output import Output, ddl, folders_of, schema
from jobs.tables.since_points import since_points
from pipelines.limits import NAME_BYTES
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.frame import INPUTS, PartitionCounts, PolledTopics, TopicNames, silver_of_few
from pipelines.silver.resume_points import from_base
from schemas.silver import SILVER
from schemas.tables import Table

MOST, LEAST = 100_000, 10_000
"""Highest number of bronze rows of a task, and lowest number worth a task. As Python objects, each row takes 2 kB."""

TASKS_PER_CORE = 4
"""Several, so that a core that finishes early takes another task."""

POOLED = 200_000
"""Bronze rows from which a pool is worth its start: each of its processes loads modules for a second."""

FEW_BYTES = 1_000_000
"""Bytes up to which the driver writes a task's rows, so that not each task adds a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """The options for making silver rows (`pipelines.silver.frame.silver`)."""

    quiet_ms: int
    hosts: ClientHosts
    topic_names: TopicNames
    partition_counts: PartitionCounts = field(default_factory=dict)
    name_bytes: int = NAME_BYTES

    @classmethod
    def of(cls, settings: Settings, polled: PolledTopics) -> Self:
        """Return the options of the settings. `polled` is the result of `polled_topics` for the warehouse."""
        return cls(
            quiet_ms=settings.quiet_ms,
            hosts=settings.hosts(),
            topic_names=polled.topic_names,
            partition_counts=polled.partition_counts,
            name_bytes=settings.max_name_bytes,
        )

    def rows(self, history: Mapping[str, pa.Table], points: pa.Table) -> dict[Table, pa.Table]:
        """Return the silver rows built from `history` (bronze rows by names in `INPUTS`), starting at `points`."""
        with no_collection():
            return silver_of_few(
                {name: milliseconds(found) for name, found in history.items()},
                milliseconds(points).to_pylist(),
                quiet_ms=self.quiet_ms,
                hosts=self.hosts,
                topic_names=self.topic_names,
                partition_counts=self.partition_counts,
                name_bytes=self.name_bytes,
            )


def silver_by_tasks(
    spark: SparkSession | None,
    warehouse: Path,
    points: pa.Table,
    making: Making,
    *,
    in_files: bool,
    processes: int,
    few_bytes: int = FEW_BYTES,
) -> dict[Table, NewRows]:
    """Return the silver rows of the groups in `points` (`resume_points.resume_points`) by table.

    With `in_files`, tasks with more than `few_bytes` of rows write data files that no commit refers to yet. Without a
    session, and with a local one, many rows are made in `processes` processes.

    Raises:
        BrokenProcessPool: one of these processes was ended.
    """
    found: dict[Table, NewRows] = {}
    executing = None if provider() is None else spark
    cores = tasks_at_once(executing) if executing else processes
    shares, total = _shares(warehouse, points, cores * TASKS_PER_CORE if cores > 1 else 1)
    if shares:
        folders = folders_of(warehouse, SILVER) if in_files else {}
        output = Output(tables=SILVER, folders=folders, few_bytes=few_bytes)
        if executing:
            task = partial(_of_task, warehouse.absolute(), shares, making, output)
            made = executing.range(0, len(shares), 1, len(shares)).mapInArrow(task, ddl(SILVER)).toArrow()
        elif processes > 1 and total >= POOLED:
            with spawned_pool(processes) as pool:
                made = pa.concat_tables(pool.map(partial(_of_process, warehouse.absolute(), making, output), shares))
        else:
            made = pa.Table.from_batches(_rows(warehouse, shares, making, output), schema(SILVER))
        found = collected(made, SILVER, warehouse)
    return {table: found.get(table, NewRows.of(table, ())) for table in SILVER}


def _shares(warehouse: Path, points: pa.Table, tasks: int) -> tuple[list[pa.Table], int]:
    """Return the points in order of groups, cut into parts with about the same number of bronze rows, and the sum."""
    with connect() as engine:
        engine.register("points", points)
        sides = []
        for name, table in INPUTS.items():
            show(engine, name, warehouse, table)
            sides.append(
                f"SELECT old.cluster, old.group_id FROM {name} old JOIN points point "  # noqa: S608 - our own names
                f"ON old.cluster = point.cluster AND old.group_id = point.group_id WHERE {from_base(table)}"
            )
        found = engine.sql(
            "WITH counted AS (SELECT cluster, group_id, count(*) AS n "  # noqa: S608 - our own names
            f"FROM ({' UNION ALL '.join(sides)}) GROUP BY ALL) "
            f"SELECT {quoted(points.column_names)}, CAST(coalesce(sum(n) OVER ("
            "ORDER BY cluster, group_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS BIGINT) AS earlier, "
            "CAST(sum(n) OVER () AS BIGINT) AS total "
            "FROM points LEFT JOIN counted USING (cluster, group_id) ORDER BY cluster, group_id"
        ).to_arrow_table()
    total = pc.max(found["total"]).as_py() or 0
    parts = pc.divide(found["earlier"], min(MOST, max(LEAST, total // tasks)))
    kept = found.select(points.column_names)
    return [kept.filter(pc.equal(parts, part)) for part in pc.unique(parts).to_pylist()], total


def _of_task(
    warehouse: Path,
    shares: Sequence[pa.Table],
    making: Making,
    output: Output,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    use_one_thread()
    mine = (shares[number] for batch in numbers for number in batch.column(0).to_pylist())
    return _rows(warehouse, mine, making, output)


def _of_process(warehouse: Path, making: Making, output: Output, points: pa.Table) -> pa.Table:
    disable_file_cache()
    use_one_thread()
    return pa.Table.from_batches(_rows(warehouse, [points], making, output), schema(SILVER))


def _rows(warehouse: Path, shares: Iterable[pa.Table], making: Making, output: Output) -> Iterator[pa.RecordBatch]:
    for points in shares:
        history = {name: since_points(warehouse, table, points, from_base(table)) for name, table in INPUTS.items()}
        found = making.rows(history, points)
        yield from output.of({table.name: rows.to_struct_array().combine_chunks() for table, rows in found.items()})
    yield from output.rest()
