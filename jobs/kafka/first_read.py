"""The first read of a topic into empty tables, before a stream continues: without Spark, which takes seconds to start.

Batches, ranges and rows are those of the stream (`jobs.kafka.kafka_source`); worker processes read them. Without a
checkpoint, a stream continues where `coverage` ends. `coverage` has no topic id, so a note next to the checkpoint has
it: else a topic that was recreated and grew further meanwhile could not be told from the old one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.kafka.kafka_source import TopicStreamReader
from jobs.kafka.source_position import TopicPosition
from jobs.processes.spawned_pool import spawned_pool
from jobs.tables.disk.durability import write_whole
from jobs.tables.output import schema
from schemas.bronze import COVERAGE

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

    from jobs.kafka.kafka_source import TopicStream

MANY = 100_000
"""Waiting records from which a first read without Spark is worth its processes."""


@dataclass(slots=True)
class FirstRead:
    """The progress of a first read: the position after its last batch, and whether it reached the end."""

    position: TopicPosition | None = None
    is_complete: bool = False


def batches(stream: TopicStream) -> Iterator[tuple[TopicPosition, pa.Table]]:
    """Yield the output of each batch, in the columns of `jobs.tables.output`, with the position after it.

    The last batch ends where the topic ends now. `stream` must have the folders of its tables.

    Raises:
        UserError: as in the stream.
        BrokenProcessPool: a process was ended.
    """
    reader = TopicStreamReader(stream)
    ends = reader.ends()
    if ends is None:
        return
    position = TopicPosition().seen(ends)
    with spawned_pool(stream.tasks) as pool:
        while (end := position.advanced(ends, stream.max_offsets_per_trigger)) != position:
            shares = reader.partitions(position.stored(), end.stored())
            yield end, pa.concat_tables(pool.map(read_share, [stream] * len(shares), shares))
            position = end


def read_share(stream: TopicStream, share: InputPartition) -> pa.Table:
    """Return the output of one task."""
    return pa.Table.from_batches(list(TopicStreamReader(stream).read(share)), schema((*stream.tables, COVERAGE)))


def write_note(checkpoint: Path, position: TopicPosition) -> None:
    """Write the position of a first read next to the stream's checkpoint."""
    write_whole(_note(checkpoint), json.dumps(position.stored()))


def topic_id_at(checkpoint: Path, position: TopicPosition) -> str | None:
    """Return the id of the topic if a first read ended at this position."""
    try:
        known = TopicPosition.of(json.loads(_note(checkpoint).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    read = {partition: at for partition, at in known.positions.items() if at.offset}
    return known.topic_id if read == position.positions else None


def _note(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.first-read.json")
