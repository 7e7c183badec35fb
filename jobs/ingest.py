"""`regroup ingest`: read the topics of each cluster into bronze, every record exactly once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.errors import PassingError, UserError
from jobs.config.terminal import say
from jobs.kafka.first_read import MANY, FirstRead, batches, write_note
from jobs.kafka.kafka_client import cluster_id
from jobs.kafka.kafka_source import TopicStream, TopicStreamReader
from jobs.kafka.log_source import LogReader, LogStream
from jobs.kafka.quarantine_limit import QuarantineLimit
from jobs.kafka.resume import is_empty, resume
from jobs.kafka.topic_streams import logs, topics
from jobs.spark.batch_merge import BatchMerge
from jobs.spark.checkpoint import Checkpoint, place
from jobs.spark.session_provider import provider
from jobs.spark.spark import session_of
from jobs.spark.streams import OnFailure, Streams, report
from jobs.states.kept import save_states
from jobs.tables.append import Once, append, append_frame
from jobs.tables.create_tables import create_tables, needs_spark
from jobs.tables.delta_io import checkpoint_path, claim
from jobs.tables.disk.durability import after_sync
from jobs.tables.new_rows import NewRows, collected
from jobs.tables.output import folders_of
from pipelines.rows_of_tables import table_of
from schemas.bronze import BRONZE, COVERAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jobs.config.settings import Settings
    from schemas.tables import Table

    OnBatch = Callable[[Mapping[Table, NewRows]], None]


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Read until stopped; with `--once`, stop when all existing records are read."""
    writers = read_first(settings, once=args.once)
    if args.once and writers and all(writer.first.is_complete for writer in writers):
        return 0
    spark = session_of(settings, "ingest")
    start(spark, settings, once=args.once, writers=writers).wait()
    return 0


def start(
    spark: SparkSession,
    settings: Settings,
    *,
    once: bool = False,
    on_batch: OnBatch | None = None,
    on_failure: OnFailure = report,
    writers: Sequence[Writer] = (),
) -> Streams:
    """Start one stream per topic of each cluster. Create the bronze tables if they are missing.

    `on_batch` gets the new rows by table after they are written. It gets the rows of several streams together if they
    arrive at the same time, and it never runs twice at the same time. After a crash it may get rows again. `on_failure`
    gets every failure after which a stream is restarted. `writers` are those that `read_first` returned.

    Raises:
        UserError: no cluster is configured or reachable, the warehouse or the checkpoint belongs to another cluster, or
            another process already writes these tables.
    """
    if not writers:
        writers = _writers(settings)
        create_tables(spark, settings.warehouse, BRONZE)
    batch_merge = BatchMerge(on_batch) if on_batch else None
    for writer in writers:
        writer.batch_merge = batch_merge
    trigger = {"availableNow": True} if once else {"processingTime": f"{settings.trigger_seconds} seconds"}
    begin = [partial(writer.start, spark, trigger) for writer in writers]
    return Streams(begin, on_failure=on_failure, is_endless=not once)


def _writers(settings: Settings) -> list[Writer]:
    """Return a writer for each feed, with its checkpoint reserved. Raise the errors of `start`."""
    if not settings.clusters:
        raise UserError(
            "No Kafka cluster is configured: give --bootstrap-servers HOST:PORT, or --config with [clusters]."
        )
    for cluster in settings.clusters:
        claim(settings.warehouse, cluster.name, cluster_id(cluster.client()))
    found: list[TopicStream | LogStream] = [
        stream
        for cluster in settings.clusters
        for stream in topics(cluster, tasks=most_tasks(settings), limits=settings.limits)
    ]
    found += [logs(cluster) for cluster in settings.clusters if cluster.logs]
    writers = [Writer(stream=stream, warehouse=settings.warehouse) for stream in found]
    # At the same time, because each may wait for a process that was killed.
    with ThreadPoolExecutor(max(1, len(writers))) as pool:
        list(pool.map(lambda writer: writer.checkpoint.acquire(), writers))
    for writer in writers:
        writer.checkpoint.refuse_other_tables()
    return writers


def most_tasks(settings: Settings) -> int:
    """Return the highest number of tasks that read one batch of a topic: the threads of a session that is our own.

    The number of executors of another session may change, and is not known here.
    """
    return settings.cores if provider() is None else settings.ingest_tasks


def read_first(
    settings: Settings, *, once: bool = False, on_failure: OnFailure = report, say: Callable[[str], None] = say
) -> Sequence[Writer]:
    """Read long topics whose tables are empty, one after the other, up to their present ends, without Spark.

    With `once`, read the short ones too if one is long, so that no stream need start. If reading fails for a reason
    that may be temporary, or for an unknown one, `on_failure` gets the failure, and the stream continues. `say` gets a
    sentence after each batch. Return the writers of all feeds for `start`, which continues after what was read; none if
    the tables need Spark.

    Raises:
        UserError: as `start`, or a topic cannot be read.
    """
    if needs_spark(settings.warehouse, BRONZE):
        return ()
    writers = _writers(settings)
    create_tables(None, settings.warehouse, BRONZE)
    # All are chosen before the first one writes, because feeds share tables.
    cold = [writer for writer in writers if writer.is_cold]
    long = [writer for writer in cold if writer.waiting() >= MANY]
    for writer in cold if once and long else long:
        try:
            writer.read_first(say)
        except Exception as error:
            if isinstance(error, UserError) and not isinstance(error, PassingError):
                raise
            writer.first = FirstRead()
            on_failure(error)
    return writers


@dataclass(kw_only=True)
class Writer:
    """The stream of one feed into its tables. `first` is its first read, until the stream has taken the position."""

    stream: TopicStream | LogStream
    warehouse: Path
    batch_merge: BatchMerge | None = None
    first: FirstRead = field(default_factory=FirstRead)

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
        return not needs_spark(self.warehouse, self.tables)

    @property
    def is_cold(self) -> bool:
        """Return whether this is a topic that was never read, whose tables are empty and written without Spark."""
        return (
            isinstance(self.stream, TopicStream)
            and self.is_local
            and not self.checkpoint.has_progress
            and is_empty(self.warehouse, self.stream)
        )

    def waiting(self) -> int:
        """Return the number of offsets that the topic has now; 0 if it does not exist."""
        assert isinstance(self.stream, TopicStream)
        ends = TopicStreamReader(self.stream).ends()
        return sum(high - low for low, high in ends.ends.values()) if ends else 0

    def read_first(self, say: Callable[[str], None]) -> None:
        """Read the topic to its present end without Spark; `say` gets a sentence after each batch.

        `coverage` is written last in each batch. If a batch is not finished, `resume` deletes its rows.

        Raises:
            UserError: the topic cannot be read; `PassingError` if that may be temporary.
        """
        assert isinstance(self.stream, TopicStream)
        limit, records = self._limit(), 0
        for number, (position, found) in enumerate(batches(self._with_folders(self.stream))):
            new = self._write_local(found, limit, number, None)
            write_note(self.checkpoint.path, position)
            self.first.position = position
            records += sum(span["records"] for span in _spans(new.get(COVERAGE)))
            say(f"{records:,} records of {self.stream.topic} on {self.stream.cluster} are in bronze")
        self.first.is_complete = True

    def _with_folders(self, stream: TopicStream) -> TopicStream:
        return replace(stream, folders=folders_of(self.warehouse, stream.tables))

    def _limit(self) -> QuarantineLimit | None:
        stream = self.stream
        if not isinstance(stream, TopicStream) or not stream.has_quarantine_limit:
            return None
        return QuarantineLimit(stream.cluster, stream.topic)

    def _write_local(
        self, found: pa.Table, limit: QuarantineLimit | None, batch_id: int, once: Once | None
    ) -> Mapping[Table, NewRows]:
        """Write the collected output of tasks without Spark, and return it."""
        new = collected(found, self.tables, self.warehouse)
        self._refuse(limit, new.get(COVERAGE), batch_id)
        self._written(new, lambda table: append(None, self.warehouse, new[table], once), lambda: new)
        return new

    def start(self, spark: SparkSession, trigger: Mapping[str, Any]) -> StreamingQuery:
        checkpoint, stream = self.checkpoint, self.stream
        first, self.first = self.first, FirstRead()

        def start() -> Mapping[str, Any]:
            if isinstance(stream, TopicStream):
                return (first.position or resume(spark, self.warehouse, stream)).stored()
            return LogReader(stream).initialOffset()

        app_id, position = checkpoint.begin(start)
        if position is not None:
            stream = stream.starting_at(position)
        if isinstance(stream, TopicStream) and self.is_local:
            stream = self._with_folders(stream)
        limit = self._limit()
        return (
            stream.frame(spark)
            .writeStream.queryName(f"{stream.cluster} {stream.topic}")
            .option("checkpointLocation", place(checkpoint.path))
            .foreachBatch(after_sync(checkpoint.path, partial(self._write, app_id, limit)))
            .trigger(**trigger)
            .start()
        )

    def _write(self, app_id: str, limit: QuarantineLimit | None, batch: DataFrame, batch_id: int) -> None:
        save_states(self.warehouse)
        with self.batch_merge.under_way() if self.batch_merge else nullcontext():
            self._write_bronze(app_id, limit, batch, batch_id)

    def _write_bronze(self, app_id: str, limit: QuarantineLimit | None, batch: DataFrame, batch_id: int) -> None:
        once = Once(app_id, batch_id)
        if self.is_local:
            self._write_local(batch.toArrow(), limit, batch_id, once)
            return
        # One pass over Kafka for all tables.
        batch.persist()
        try:
            frames = self._frames(batch)
            covered = NewRows.of_frame(COVERAGE, frames[COVERAGE]) if COVERAGE in frames else None
            self._refuse(limit, covered, batch_id)
            self._written(
                frames,
                lambda table: append_frame(frames[table], self.warehouse, table, once),
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
        spans = _spans(covered)
        offsets = sum(span["to_offset"] - span["from_offset"] for span in spans)
        if batch_id == 0 and offsets and not sum(span["records"] for span in spans):
            raise UserError(
                f"Kafka has {offsets} offsets of {self.stream.topic} on {self.stream.cluster}, but returned no "
                "record: check with `regroup doctor` what this user may read."
            )
        if limit:
            limit.check((span["source_partition"], span["records"], span["quarantined"]) for span in spans)

    def _frames(self, batch: DataFrame) -> dict[Table, DataFrame]:
        """Return the tables that get rows, with the rows."""
        counts = batch.agg(*(F.count(table.name).alias(table.name) for table in self.tables)).first()
        assert counts is not None
        return {table: table_of(batch, table) for table in self.tables if counts[table.name]}


def _spans(covered: NewRows | None) -> list[dict[str, Any]]:
    """Return the rows of `coverage` for offsets that were read."""
    return [span for span in covered.few.to_pylist() if not span["is_gap"]] if covered else []
