"""The streaming data source: fixed ranges of one topic, folded to bronze rows in the workers.

Made for `__consumer_offsets`, which Spark's own Kafka source reads as empty by default. The source assigns partitions
and never subscribes, because a subscription would write records of its own group into the topic that it reads.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jobs.kafka.bronze_source import read_stream
from jobs.kafka.kafka_client import TopicEnds, admin, forget, kept_for, topic_ends, unreachable
from jobs.kafka.kafka_read import Range, RangeReader
from jobs.kafka.quarantine_limit import ConsecutiveLimit
from jobs.kafka.source_position import TopicPosition, lost
from jobs.tables.memory import no_collection
from jobs.tables.output import FEW_BYTES, Output, union
from pipelines.arrow_types import row_type
from pipelines.coverage import Span
from schemas.bronze import COVERAGE, QUARANTINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pipelines.bronze_batch import Records
    from schemas.tables import Table

    Fold = Callable[[Records, Mapping[int, Span]], Mapping[str, pa.StructArray]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TopicStream:
    """One topic of one cluster, and the conversion of its records to rows.

    A stream without a checkpoint starts at `start`. With `has_headers`, records include their headers. With `is_flat`,
    their keys and values are `FlatBytes` where possible, which saves time if `fold` works on columns. `fold` turns
    records into rows by table name, and counts them in the spans of their partitions. It fills only `tables`;
    `coverage` is filled as well. `folders` are the tables' folders if tasks may write data files themselves; a task
    does so above `few_bytes`. `options` are librdkafka's and may contain secrets, so they are pickled. Spark would
    print options of a data source.
    """

    cluster: str
    topic: str
    options: Mapping[str, str] = field(repr=False)
    fold: Fold
    tables: tuple[Table, ...]
    max_offsets_per_trigger: int
    tasks: int
    has_quarantine_limit: bool = False
    has_headers: bool = False
    is_flat: bool = False
    folders: Mapping[str, str] = field(default_factory=dict)
    few_bytes: int = FEW_BYTES
    start: TopicPosition = field(default_factory=TopicPosition)

    def starting_at(self, position: Mapping[str, Any]) -> Self:
        """Return the stream with this `start`, in its stored form."""
        return replace(self, start=TopicPosition.of(position))

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the topic's rows as a stream, from `start` if there is no checkpoint."""
        return read_stream(spark, TopicStreamReader(self), (*self.tables, COVERAGE))


@dataclass(frozen=True)
class Share(InputPartition):
    """The ranges that one task reads. `gaps` are the losses known in advance."""

    ranges: tuple[Range, ...]
    gaps: tuple[Span, ...]


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the driver and reads them in the workers. A repeated batch gives the same rows."""

    def __init__(self, stream: TopicStream) -> None:
        self._stream = stream
        self._target: TopicEnds | None = None
        self._has_target = False
        self._has_waited = False

    # ruff: noqa: N802 - the names below are Spark's

    def initialOffset(self) -> dict[str, Any]:
        return self._stream.start.stored()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._stream.max_offsets_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.ends()
        self._has_target = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        ends = self._target if self._has_target else self.ends()
        if ends is None:
            return start
        most = None if isinstance(limit, ReadAllAvailable) else self._stream.max_offsets_per_trigger
        return TopicPosition.of(start).seen(ends).advanced(ends, most).stored()

    def ends(self) -> TopicEnds | None:
        """Return the topic's ends now; None if it does not exist, which is reported once."""
        # Clients are freed late: with one for each batch, a process had 71 with 282 threads after 200 batches.
        identity = ("ends", frozenset(self._stream.options.items()))
        try:
            ends = topic_ends(kept_for(identity, lambda: admin(self._stream.options)), self._stream.topic)
        except KafkaException as error:
            # The next client begins with the configured brokers again.
            forget(identity)
            raise unreachable(self._stream.options, error.args[0], self._stream.topic) from None
        if ends is None and not self._has_waited:
            self._has_waited = True
            log.warning("waiting: the topic %s does not exist yet on %s", self._stream.topic, self._stream.cluster)
        return ends

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = TopicPosition.of(start), TopicPosition.of(end)
        gaps = lost(before, after)
        ranges = []
        for partition, position in after.positions.items():
            old = before.position(partition)
            first = old.offset if old.log_epoch == position.log_epoch else position.begin
            if first < position.offset:
                ranges.append(
                    Range(partition=partition, log_epoch=position.log_epoch, start=first, end=position.offset)
                )
        shares = [share for share in _packed(ranges, self._stream.tasks) if share]
        if gaps and not shares:
            shares = [[]]
        return [Share(ranges=tuple(s), gaps=() if i else tuple(gaps)) for i, s in enumerate(shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        stream = self._stream
        output = Output(tables=(*stream.tables, COVERAGE), folders=stream.folders, few_bytes=stream.few_bytes)
        spans = {
            r.partition: Span(partition=r.partition, log_epoch=r.log_epoch, from_offset=r.start, to_offset=r.end)
            for r in partition.ranges
        }
        gaps = list(partition.gaps)
        if partition.ranges:
            reader = RangeReader(
                stream.options,
                stream.topic,
                partition.ranges,
                has_headers=stream.has_headers,
                is_flat=stream.is_flat,
            )
            limit = ConsecutiveLimit(stream.cluster, stream.topic) if stream.has_quarantine_limit else None
            with no_collection():
                for records in reader:
                    rows = stream.fold(records, spans)
                    if limit:
                        limit.check(records, rows[QUARANTINE.name])
                    yield from output.of(rows)
            gaps += reader.gaps
        yield from output.rest()
        covered = [span.row(stream.cluster, stream.topic) for span in (*_around(spans, gaps), *gaps)]
        yield from union({COVERAGE.name: pa.array(covered, row_type(COVERAGE))}, output.tables)


def _packed(ranges: Sequence[Range], tasks: int) -> list[list[Range]]:
    """Distribute the ranges over `tasks` tasks, so that the tasks have nearly equal numbers of offsets."""
    shares: list[list[Range]] = [[] for _ in range(tasks)]
    sizes = [0] * tasks
    for each in sorted(ranges, key=lambda r: (r.start - r.end, r.partition)):
        least = sizes.index(min(sizes))
        shares[least].append(each)
        sizes[least] += each.end - each.start
    return shares


def _around(spans: Mapping[int, Span], gaps: Sequence[Span]) -> list[Span]:
    """Return the parts of the spans between their gaps. A span's counts are in its first part."""
    found = []
    for span in spans.values():
        parts, start = [], span.from_offset
        mine = (gap for gap in gaps if (gap.partition, gap.log_epoch) == (span.partition, span.log_epoch))
        for gap in sorted(mine, key=lambda gap: gap.from_offset):
            parts.append((start, min(gap.from_offset, span.to_offset)))
            start = max(start, gap.to_offset)
        whole = [part for part in (*parts, (start, span.to_offset)) if part[0] < part[1]]
        for at, (begin, end) in enumerate(whole):
            if at == 0:
                found.append(replace(span, from_offset=begin, to_offset=end))
            else:
                part = Span(partition=span.partition, log_epoch=span.log_epoch, from_offset=begin, to_offset=end)
                found.append(part)
    return found
