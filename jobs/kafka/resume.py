"""The start position of a stream without a checkpoint: the end of bronze."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.kafka.first_read import topic_id_at
from jobs.kafka.source_position import PartitionPosition, TopicPosition
from jobs.tables.delta_io import checkpoint_path, delta_table, read, table_path
from jobs.tables.table_facts import has_rows
from jobs.tables.transactions import table_lock
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COVERAGE, OFFSET_COMMITS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import Column, SparkSession

    from jobs.kafka.kafka_source import TopicStream
    from schemas.tables import Table


def resume(spark: SparkSession, warehouse: Path, stream: TopicStream) -> TopicPosition:
    """Return the position after the last offsets that `coverage` has for the feed's topic.

    `coverage` is written last, so rows after it belong to an unfinished batch. They are deleted here and read again.
    Otherwise runs of commits that are folded differently would count twice.
    """
    if is_empty(warehouse, stream):
        return TopicPosition()
    spans = read(spark, warehouse, COVERAGE)
    here = (F.col("cluster") == stream.cluster) & (F.col("source") == stream.topic)
    newest = spans.where(here).groupBy("source_partition", "log_epoch").agg(F.max("to_offset").alias("end")).collect()
    positions: dict[int, PartitionPosition] = {}
    for row in sorted(newest, key=lambda r: r.log_epoch):
        positions[row.source_partition] = PartitionPosition(log_epoch=row.log_epoch, begin=0, offset=row.end)
    for table in stream.tables:
        if not has_rows(warehouse, table):
            continue
        unfinished = _beyond(table, stream, positions)
        path = table_path(warehouse, table)
        target = delta_table(spark, path)
        if not target.toDF().where(unfinished).isEmpty():
            with table_lock(path, alone=True):
                target.delete(unfinished)
    position = TopicPosition(positions=positions)
    checkpoint = checkpoint_path(warehouse, f"ingest/{stream.cluster}/{stream.topic}")
    return replace(position, topic_id=topic_id_at(checkpoint, position))


def is_empty(warehouse: Path, stream: TopicStream) -> bool:
    """Return whether the feed's tables have no rows, of no cluster."""
    return not any(has_rows(warehouse, table) for table in (*stream.tables, COVERAGE))


def _beyond(table: Table, stream: TopicStream, positions: Mapping[int, PartitionPosition]) -> Column:
    """Return the condition for this stream's rows at or after `positions`. It excludes observations, whose key is
    idempotent.
    """
    epoch, partition, offset = F.col("log_epoch"), F.col("source_partition"), F.col("source_offset")
    mine = F.col("cluster") == stream.cluster
    match table.name:
        case OFFSET_COMMITS.name:
            offset = F.col("last_offset")
        case COORDINATOR_EVENTS.name:
            source = F.regexp_extract("source_id", r"^(.*)-(\d+)(#\d+)?$", 1)
            partition = F.regexp_extract("source_id", r"^(.*)-(\d+)(#\d+)?$", 2).try_cast("int")
            mine, epoch, offset = mine & (source == stream.topic), F.lit(0), F.col("line_no")
        case QUARANTINE.name:
            mine &= F.col("source") == stream.topic
        case ADMIN_OBSERVATIONS.name:
            return F.lit(False)  # noqa: FBT003 - a literal, not a flag
    before = [
        (partition == p) & ((epoch < position.log_epoch) | ((epoch == position.log_epoch) & (offset < position.offset)))
        for p, position in positions.items()
    ]
    return mine & ~reduce(or_, before, F.lit(False))  # noqa: FBT003
