"""`regroup ingest`: read the topics of each cluster into bronze, every record exactly once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.errors import UserError
from jobs.kafka.kafka_client import cluster_id
from jobs.kafka.kafka_source import TopicStream
from jobs.kafka.quarantine_limit import QuarantineLimit
from jobs.kafka.resume import resume
from jobs.kafka.topic_streams import logs, topics
from jobs.spark.batch_merge import BatchMerge
from jobs.spark.checkpoint import Checkpoint
from jobs.spark.spark import session
from jobs.spark.streams import OnFailure, Streams, report
from jobs.tables.append import Once, append, append_frame
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path, claim, table_path
from jobs.tables.new_rows import NewRows, collected
from jobs.tables.transactions import is_local
from pipelines.rows_of_tables import table_of
from schemas.bronze import BRONZE, COVERAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jobs.config.settings import Settings
    from jobs.kafka.log_source import LogStream
    from schemas.tables import Table

    OnBatch = Callable[[Mapping[Table, NewRows]], None]


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Read until stopped; with `--once`, stop when all existing records are read."""
    spark = session("regroup ingest", cores=settings.cores, driver_memory=settings.driver_memory)
    start(spark, settings, once=args.once).wait()
    return 0


def start(
    spark: SparkSession,
    settings: Settings,
    *,
    once: bool = False,
    on_batch: OnBatch | None = None,
    on_failure: OnFailure = report,
) -> Streams:
    """Start one stream per topic of each cluster. Create the bronze tables if they are missing.

    `on_batch` gets the new rows by table after they are written. It gets the rows of several streams together if they
    arrive at the same time, and it never runs twice at the same time. After a crash it may get rows again. `on_failure`
    gets every failure after which a stream is restarted.

    Raises:
        UserError: no cluster is configured or reachable, the warehouse or the checkpoint belongs to another cluster, or
            another process already writes these tables.
    """
    if not settings.clusters:
        raise UserError(
            "No Kafka cluster is configured: give --bootstrap-servers HOST:PORT, or --config with [clusters]."
        )
    for cluster in settings.clusters:
        claim(settings.warehouse, cluster.name, cluster_id(cluster.client()))
    found: list[TopicStream | LogStream] = [
        stream
        for cluster in settings.clusters
        for stream in topics(cluster, tasks=settings.cores, limits=settings.limits)
    ]
    found += [logs(cluster) for cluster in settings.clusters if cluster.logs]
    batch_merge = BatchMerge(on_batch) if on_batch else None
    writers = [Writer(stream=stream, warehouse=settings.warehouse, batch_merge=batch_merge) for stream in found]
    for writer in writers:
        writer.checkpoint.acquire()
        writer.checkpoint.refuse_other_tables()
    create_tables(spark, settings.warehouse, BRONZE)
    trigger = {"availableNow": True} if once else {"processingTime": f"{settings.trigger_seconds} seconds"}
    begin = [partial(writer.start, spark, trigger) for writer in writers]
    return Streams(begin, on_failure=on_failure, is_endless=not once)


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The stream of one feed into its tables."""

    stream: TopicStream | LogStream
    warehouse: Path
    batch_merge: BatchMerge | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*self.stream.tables, COVERAGE)

    @property
    def checkpoint(self) -> Checkpoint:
        path = checkpoint_path(self.warehouse, f"ingest/{self.stream.cluster}/{self.stream.topic}")
        return Checkpoint(path=path, warehouse=self.warehouse, tables=self.tables)

    @property
    def is_local(self) -> bool:
        """Return whether batches are committed without Spark."""
        return all(is_local(table_path(self.warehouse, table)) for table in self.tables)

    def start(self, spark: SparkSession, trigger: Mapping[str, Any]) -> StreamingQuery:
        checkpoint, stream = self.checkpoint, self.stream
        if isinstance(stream, TopicStream) and not checkpoint.has_progress:
            stream = replace(stream, start=resume(spark, self.warehouse, stream))
        if isinstance(stream, TopicStream) and self.is_local:
            folders = {table.name: str(Path(table_path(self.warehouse, table)).absolute()) for table in stream.tables}
            stream = replace(stream, folders=folders)
        app_id = checkpoint.app_id()
        limit = (
            QuarantineLimit(stream.cluster, stream.topic)
            if isinstance(stream, TopicStream) and stream.has_quarantine_limit
            else None
        )
        return (
            stream.frame(spark)
            .writeStream.queryName(f"{stream.cluster} {stream.topic}")
            .option("checkpointLocation", str(checkpoint.path))
            .foreachBatch(partial(self._write, app_id, limit))
            .trigger(**trigger)
            .start()
        )

    def _write(self, app_id: str, limit: QuarantineLimit | None, batch: DataFrame, batch_id: int) -> None:
        with self.batch_merge.under_way() if self.batch_merge else nullcontext():
            self._write_bronze(app_id, limit, batch, batch_id)

    def _write_bronze(self, app_id: str, limit: QuarantineLimit | None, batch: DataFrame, batch_id: int) -> None:
        spark, once = batch.sparkSession, Once(app_id, batch_id)
        if self.is_local:
            new = collected(batch.toArrow(), self.tables, self.warehouse)
            self._refuse(limit, new.get(COVERAGE), batch_id)
            self._written(new, lambda table: append(spark, self.warehouse, new[table], once), lambda: new)
            return
        # One pass over Kafka for all tables.
        batch.persist()
        try:
            frames = self._frames(batch)
            covered = NewRows.of_frame(COVERAGE, frames[COVERAGE]) if COVERAGE in frames else None
            self._refuse(limit, covered, batch_id)
            self._written(
                frames,
                lambda table: append_frame(frames[table], table_path(self.warehouse, table), once),
                lambda: {table: NewRows.of_frame(table, frame) for table, frame in frames.items()},
            )
        finally:
            batch.unpersist()

    def _written(
        self, tables: Collection[Table], write: Callable[[Table], None], rows: Callable[[], Mapping[Table, NewRows]]
    ) -> None:
        """Write each table, `coverage` last, and pass `rows` to the next step."""
        data = [table for table in tables if table is not COVERAGE]
        with ThreadPoolExecutor(len(self.tables)) as pool:
            list(pool.map(write, data))
        # `coverage` is last, because its rows say that the records are in the tables. The next step need not wait for
        # it.
        with ThreadPoolExecutor(1) as pool:
            covered = pool.map(write, {*tables} - {*data})
            if self.batch_merge:
                self.batch_merge.hand_on(rows())
            list(covered)

    def _refuse(self, limit: QuarantineLimit | None, covered: NewRows | None, batch_id: int) -> None:
        """Raise `UserError` if Kafka returned no record of a first batch, or if too few records could be decoded."""
        spans = [span for span in covered.few.to_pylist() if not span["is_gap"]] if covered else []
        offsets = sum(span["to_offset"] - span["from_offset"] for span in spans)
        if batch_id == 0 and offsets and not sum(span["records"] for span in spans):
            raise UserError(
                f"Kafka has {offsets} offsets of {self.stream.topic} on {self.stream.cluster}, but gave not one "
                "record: check with `./regroup doctor` what this user may read."
            )
        if limit:
            limit.check((span["source_partition"], span["records"], span["quarantined"]) for span in spans)

    def _frames(self, batch: DataFrame) -> dict[Table, DataFrame]:
        """Return the tables that get rows, with the rows."""
        counts = batch.agg(*(F.count(table.name).alias(table.name) for table in self.tables)).first()
        assert counts is not None
        return {table: table_of(batch, table) for table in self.tables if counts[table.name]}
