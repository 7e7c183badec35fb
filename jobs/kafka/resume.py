"""The start position of a stream without a checkpoint: the end of bronze."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from dashboards.lake.sql_names import literal
from jobs.kafka.first_read import topic_id_at
from jobs.kafka.source_position import RECREATED, PartitionPosition, TopicPosition, covered
from jobs.tables.delta_io import checkpoint_path, read
from jobs.tables.spark_commit import delete_rows
from jobs.tables.table_facts import has_rows
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COVERAGE, OFFSET_COMMITS, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

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
    ends = (
        spans.where(here)
        .groupBy("source_partition", "log_epoch")
        .agg(F.max("to_offset"), F.max(F.col("gap_reason").eqNullSafe(RECREATED)))
    )
    position = covered((row[0], row[1], row[2], row[3]) for row in ends.collect())
    for table in stream.tables:
        if not has_rows(warehouse, table):
            continue
        unfinished = _beyond(table, stream, position.positions)
        if not read(spark, warehouse, table).where(unfinished).isEmpty():
            delete_rows(spark, warehouse, table, unfinished)
    checkpoint = checkpoint_path(warehouse, f"ingest/{stream.cluster}/{stream.topic}")
    return replace(position, topic_id=topic_id_at(checkpoint, position))


def is_empty(warehouse: Path, stream: TopicStream) -> bool:
    """Return whether the feed's tables have no rows, of no cluster."""
    return not any(has_rows(warehouse, table) for table in (*stream.tables, COVERAGE))


def _beyond(table: Table, stream: TopicStream, positions: Mapping[int, PartitionPosition]) -> str:
    """Return the condition for this stream's rows at or after `positions`. It excludes observations, whose key is
    idempotent.
    """
    epoch, partition, offset = "log_epoch", "source_partition", "source_offset"
    mine, topic = f"cluster = {literal(stream.cluster)}", literal(stream.topic)
    match table.name:
        case OFFSET_COMMITS.name:
            offset = "last_offset"
        case COORDINATOR_EVENTS.name:
            source, partition = (rf"regexp_extract(source_id, r'^(.*)-(\d+)(#\d+)?$', {group})" for group in (1, 2))
            mine, epoch, offset = f"{mine} AND {source} = {topic}", "0", "line_no"
            partition = f"try_cast({partition} AS INT)"
        case QUARANTINE.name:
            mine = f"{mine} AND source = {topic}"
        case ADMIN_OBSERVATIONS.name:
            return "false"
    before = [
        f"{partition} = {p} AND ({epoch} < {position.log_epoch} OR "
        f"{epoch} = {position.log_epoch} AND {offset} < {position.offset})"
        for p, position in positions.items()
    ]
    return f"{mine} AND NOT ({' OR '.join(before) or 'false'})"
