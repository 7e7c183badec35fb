"""`regroup ingest`: the topics of each cluster into bronze, every record exactly once."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.append import append
from jobs.checkpoint import Checkpoint
from jobs.delta_io import checkpoint_path, claim, create_tables, table_path
from jobs.errors import UserError
from jobs.feeds import events, logs, offsets
from jobs.fuse import Fuse
from jobs.gathering import Gathering
from jobs.kafka_client import cluster_id
from jobs.kafka_source import Feed
from jobs.resume import resume
from jobs.spark import session
from schemas.bronze import BRONZE, COVERAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from jobs.log_source import LogFeed
    from jobs.settings import Settings
    from schemas.tables import Table

    OnBatch = Callable[[Mapping[Table, DataFrame]], None]

TALLY = ("coverage.source_partition", "coverage.records", "coverage.quarantined")


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Read until stopped; with `--once` until everything that is there now has been read."""
    spark = session("regroup ingest", cores=settings.cores, driver_memory=settings.driver_memory)
    wait(start(spark, settings, once=args.once))
    return 0


def start(
    spark: SparkSession, settings: Settings, *, once: bool = False, on_batch: OnBatch | None = None
) -> list[StreamingQuery]:
    """Start one stream per topic of each cluster; bronze tables are made if need be.

    `on_batch` gets the new rows by table once they are written, those of several streams together where they come at
    the same time, and never twice at once. After a crash it may get rows again.

    Raises:
        UserError: no cluster is named or reached, warehouse and checkpoint belong to something else, or another process
            already fills these tables.
    """
    if not settings.clusters:
        raise UserError("No Kafka cluster is named: give --bootstrap-servers HOST:PORT, or --config with [clusters].")
    for cluster in settings.clusters:
        claim(settings.warehouse, cluster.name, cluster_id(cluster.client()))
    found: list[Feed | LogFeed] = [
        make(cluster, tasks=settings.cores) for cluster in settings.clusters for make in (offsets, events)
    ]
    found += [logs(cluster) for cluster in settings.clusters if cluster.logs]
    gathering = Gathering(on_batch) if on_batch else None
    writers = [Writer(feed=feed, warehouse=settings.warehouse, gathering=gathering) for feed in found]
    for writer in writers:
        writer.checkpoint.hold()
        writer.checkpoint.refuse_other_tables()
    create_tables(spark, settings.warehouse, BRONZE)
    trigger = {"availableNow": True} if once else {"processingTime": f"{settings.trigger_seconds} seconds"}
    return [writer.start(spark, trigger) for writer in writers]


def wait(queries: Sequence[StreamingQuery]) -> None:
    """Until all have ended.

    Raises:
        UserError: one failed for a reason that has a sentence.
    """
    try:
        while any(query.isActive for query in queries):
            for query in queries:
                query.awaitTermination(1)
        for query in queries:
            query.awaitTermination()
    except StreamingQueryException as error:
        raise _sentence(error) from None
    finally:
        for query in queries:
            query.stop()


def _sentence(error: StreamingQueryException) -> Exception:
    """What a worker or the driver's own code said, out of the traces that Spark wraps it in."""
    said = re.findall(r"UserError: (.+)", str(error))
    return UserError(said[-1]) if said else error


@dataclass(frozen=True, kw_only=True)
class Writer:
    """One feed's stream into its tables."""

    feed: Feed | LogFeed
    warehouse: Path
    gathering: Gathering | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*self.feed.tables, COVERAGE)

    @property
    def checkpoint(self) -> Checkpoint:
        path = checkpoint_path(self.warehouse, f"ingest/{self.feed.cluster}/{self.feed.topic}")
        return Checkpoint(path=path, warehouse=self.warehouse, tables=self.tables)

    def start(self, spark: SparkSession, trigger: Mapping[str, Any]) -> StreamingQuery:
        checkpoint, feed = self.checkpoint, self.feed
        if isinstance(feed, Feed) and not checkpoint.has_progress:
            feed = replace(feed, start=resume(spark, self.warehouse, feed))
        app_id = checkpoint.app_id()
        fuse = Fuse(feed.cluster, feed.topic) if isinstance(feed, Feed) and feed.has_fuse else None
        return (
            feed.stream(spark)
            .writeStream.queryName(f"{feed.cluster} {feed.topic}")
            .option("checkpointLocation", str(checkpoint.path))
            .foreachBatch(partial(self._write, app_id, fuse))
            .trigger(**trigger)
            .start()
        )

    def _write(self, app_id: str, fuse: Fuse | None, batch: DataFrame, batch_id: int) -> None:
        with self.gathering.under_way() if self.gathering else nullcontext():
            self._write_bronze(app_id, fuse, batch, batch_id)

    def _write_bronze(self, app_id: str, fuse: Fuse | None, batch: DataFrame, batch_id: int) -> None:
        # One pass over Kafka for all tables.
        batch.persist()
        try:
            new = self._new_rows(fuse, batch, batch_id)
            data = [table for table in new if table is not COVERAGE]
            write = partial(self._append, new, app_id, batch_id)
            with ThreadPoolExecutor(len(self.tables)) as pool:
                list(pool.map(write, data))
            # Last: what coverage says was read is in the tables. What is built of them need not wait for that.
            with ThreadPoolExecutor(1) as pool:
                covered = pool.map(write, new.keys() - data)
                if self.gathering:
                    self.gathering.hand_on({table: frame for table, (frame, _) in new.items()})
                list(covered)
        finally:
            batch.unpersist()

    def _append(self, new: Mapping[Table, tuple[DataFrame, int]], app_id: str, version: int, table: Table) -> None:
        frame, rows = new[table]
        append(frame, table_path(self.warehouse, table), app_id=app_id, version=version, rows=rows)

    def _new_rows(self, fuse: Fuse | None, batch: DataFrame, batch_id: int) -> dict[Table, tuple[DataFrame, int]]:
        """The tables that gain rows, with the rows and how many."""
        span = F.col("coverage.to_offset") - F.col("coverage.from_offset")
        counts = batch.agg(
            *(F.count(table.name).alias(table.name) for table in self.tables),
            F.sum(F.when(~F.col("coverage.is_gap"), span)).alias("_span"),
            F.sum("coverage.records").alias("_records"),
            F.collect_list(F.when(~F.col("coverage.is_gap"), F.struct(*TALLY))).alias("_read"),
        ).first()
        assert counts is not None
        if batch_id == 0 and counts["_span"] and not counts["_records"]:
            raise UserError(
                f"Kafka has {counts['_span']} offsets of {self.feed.topic} on {self.feed.cluster}, but gave not one "
                "record: check with `./regroup doctor` what this user may read."
            )
        if fuse:
            fuse.hold((*read,) for read in counts["_read"])
        return {
            table: (batch.where(F.col(table.name).isNotNull()).select(f"{table.name}.*"), counts[table.name])
            for table in self.tables
            if counts[table.name]
        }
