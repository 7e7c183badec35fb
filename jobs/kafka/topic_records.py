"""The records of one topic for display: a selection of them, partition by partition."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicPartition

from jobs.config.errors import UserError
from jobs.kafka.kafka_client import RESPONSE_WITHIN_S, admin, consumer, topic_ends, unreachable
from jobs.kafka.kafka_read import Range, RangeReader
from pipelines.decoding.group_partition import partition_of
from pipelines.decoding.source_record import SourceRecord
from schemas.written import span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient

    from pipelines.bronze_batch import Records

RECORDS_AT_ONCE, BYTES_AT_ONCE = 2_000, 16 << 20
"""Size of the first piece: small enough that output starts at once."""

FOLLOW_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The records to read, of `partition` or of the partition that holds `group`.

    Offsets go from `start` (inclusive) to `end` (exclusive). `since_ms` starts at the first record that is not older.
    `is_from_end` selects only records that are written from now on.
    """

    partition: int | None = None
    group: str | None = None
    start: int | None = None
    end: int | None = None
    since_ms: int | None = None
    is_from_end: bool = False


class TopicRecords:
    """A topic at one time. `records` reads its records, `follow` also the later ones.

    Raises:
        UserError: no broker responds, the topic or partition does not exist, or the user may not read the topic.
    """

    def __init__(
        self, options: Mapping[str, str], topic: str, selection: Selection, on_gap: Callable[[str], None]
    ) -> None:
        self._options, self._topic, self._selection, self._on_gap = options, topic, selection, on_gap
        self._admin: AdminClient = admin(options)
        ends = self._ends()
        self._chosen = self._partitions(ends)
        self._position = {p: self._first(*ends[p]) for p in self._chosen}
        if selection.since_ms is not None:
            self._position = self._positions_since(ends, selection.since_ms)
        self._end = {p: ends[p][1] for p in self._chosen}

    def records(self) -> Iterator[SourceRecord]:
        """Yield the records of the partitions, ordered by partition and offset."""
        for partition in self._chosen:
            end = self._end[partition]
            last = end if self._selection.end is None else min(end, self._selection.end)
            if self._position[partition] < last:
                yield from self._read(partition, last)
            self._position[partition] = max(self._position[partition], last)

    def follow(self) -> Iterator[SourceRecord | None]:
        """Yield records forever or up to the selected last offset, and None after each check for new records."""
        while not self._is_done():
            yield from self.records()
            yield None
            time.sleep(FOLLOW_EVERY_S)
            for partition, (low, high) in self._ends().items():
                if partition not in self._position and self._has_all:
                    # Added since the last check, so all of its records are new.
                    self._position[partition], self._end[partition] = self._begin(low), low
                    self._chosen.append(partition)
                if partition in self._position:
                    # A selected first offset may be beyond the end of the log.
                    if high < min(self._position[partition], self._end[partition]):
                        self._on_gap(f"partition {partition} has become shorter: it is read again from its beginning")
                        self._position[partition] = low
                    self._end[partition] = high

    @property
    def _has_all(self) -> bool:
        """Whether the records of all partitions are selected."""
        return self._selection.partition is None and self._selection.group is None

    def _is_done(self) -> bool:
        last = self._selection.end
        return last is not None and all(at >= last for at in self._position.values())

    def _read(self, partition: int, end: int) -> Iterator[SourceRecord]:
        unread = Range(partition=partition, log_epoch=0, start=self._position[partition], end=end)
        reader = RangeReader(
            self._options, self._topic, [unread], records_at_once=RECORDS_AT_ONCE, bytes_at_once=BYTES_AT_ONCE
        )
        for piece in reader:
            yield from _each(piece)
        for gap in reader.gaps:
            offsets = span(str(gap.from_offset), str(gap.to_offset - 1))
            self._on_gap(f"partition {partition}, offsets {offsets}: {gap.gap_reason}")

    def _ends(self) -> Mapping[int, tuple[int, int]]:
        try:
            found = topic_ends(self._admin, self._topic)
        except KafkaException as error:
            raise unreachable(self._options, error.args[0], self._topic) from None
        if found is None:
            raise UserError(
                f"Kafka at {self._options.get('bootstrap.servers', '')} has no topic {self._topic}: correct --topic. "
                "(Kafka creates __consumer_offsets with the first group.)"
            )
        return found.ends

    def _partitions(self, ends: Mapping[int, object]) -> list[int]:
        chosen = self._selection.partition
        if self._selection.group is not None:
            chosen = partition_of(self._selection.group, len(ends))
        if chosen is None:
            return sorted(ends)
        if chosen not in ends:
            known = span("0", str(max(ends)))
            raise UserError(
                f"The topic {self._topic} has the partitions {known}, but not {chosen}: correct --partition."
            )
        return [chosen]

    def _first(self, low: int, high: int) -> int:
        return high if self._selection.is_from_end else self._begin(low)

    def _begin(self, low: int) -> int:
        return low if self._selection.start is None else max(low, self._selection.start)

    def _positions_since(self, ends: Mapping[int, tuple[int, int]], since_ms: int) -> dict[int, int]:
        """Return for each partition the offset of its first record that is not older; its end if there is none."""
        asked = [TopicPartition(self._topic, partition, since_ms) for partition in self._chosen]
        client: Consumer = consumer(self._options)
        try:
            found = client.offsets_for_times(asked, timeout=RESPONSE_WITHIN_S)
        except KafkaException as error:
            raise unreachable(self._options, error.args[0], self._topic) from None
        finally:
            client.close()
        return {at.partition: at.offset if at.offset >= 0 else ends[at.partition][1] for at in found}


def _each(piece: Records) -> Iterator[SourceRecord]:
    numbers = (column.tolist() for column in (piece.partition, piece.offset, piece.timestamp_ms))
    yield from map(SourceRecord._make, zip(*numbers, piece.key, piece.value, strict=True))
