"""Fixed ranges of offsets, read in a Spark worker: every record in them once, and a report of missing offsets."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from jobs.config.errors import PassingError, UserError
from jobs.kafka.arrivals import ObjectReading
from jobs.kafka.batch_headers import batch_at
from jobs.kafka.kafka_client import RESPONSE_WITHIN_S, consumer, kept_for
from jobs.kafka.librdkafka import library
from jobs.kafka.native_consumer import FlatReading
from pipelines.bronze_batch import Records
from pipelines.coverage import Span
from pipelines.decoding.flat_bytes import FlatBytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from confluent_kafka import Consumer
    from numpy.typing import NDArray

    from jobs.kafka.arrivals import ArrivedMessages, Note, Reading

log = logging.getLogger(__name__)
MESSAGES_AT_ONCE = 20_000
RECORDS_AT_ONCE = 500_000
BYTES_AT_ONCE = 128 << 20
"""Bytes of keys and values. Records of ordinary size reach half of it, but a client may make each record 1 MB long."""
DOUBT_AFTER_S = 15.0
"""After this time without a record, the reader requests the ends of the log, because it may have become shorter."""
GIVE_UP_AFTER_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Offsets from `start` (inclusive) to `end` (exclusive) of one partition."""

    partition: int
    log_epoch: int
    start: int
    end: int


class RangeReader:
    """Yields the records of the ranges in large pieces, in ascending order of offsets within each partition.

    A range ends when a record at or after its last offset, or the end of the log, was seen, because compaction and
    transaction markers leave offsets without a record. Afterwards `gaps` has the offsets that brokers no longer have. A
    piece ends at `records_at_once` records or `bytes_at_once` bytes; it exceeds them by at most one response. With
    `is_flat`, keys and values are `FlatBytes` where librdkafka's messages can be read directly, and without headers.

    Raises:
        UserError: the user may not read the topic.
        PassingError: Kafka sends nothing.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        topic: str,
        ranges: Sequence[Range],
        *,
        has_headers: bool = False,
        is_flat: bool = False,
        records_at_once: int = RECORDS_AT_ONCE,
        bytes_at_once: int = BYTES_AT_ONCE,
    ) -> None:
        self.gaps: list[Span] = []
        self._records_at_once, self._bytes_at_once = records_at_once, bytes_at_once
        self._topic, self._options = topic, options
        self._reading = _kept_reading(options, is_flat=is_flat and not has_headers, has_headers=has_headers)
        self._open = {r.partition: r for r in ranges}
        size = 1 + max(self._open)
        self._position, self._end = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._epoch = np.zeros(size, np.int32)
        for r in ranges:
            self._position[r.partition], self._end[r.partition] = r.start, r.end
            self._epoch[r.partition] = r.log_epoch
        self._complaint = ""

    def __iter__(self) -> Iterator[Records]:
        self._reading.assign(self._topic, {r.partition: r.start for r in self._open.values()})
        try:
            yield from self._records()
        finally:
            self._reading.unassign()

    def _records(self) -> Iterator[Records]:
        pieces: list[Records] = []
        size = 0
        responded_at = time.monotonic()
        while self._open:
            before = len(pieces)
            if self._take(self._reading.take(self._wanted(), 0.1), pieces):
                responded_at = time.monotonic()
                size += sum(map(_size, pieces[before:]))
            elif time.monotonic() - responded_at > DOUBT_AFTER_S:
                self._doubt(since=responded_at)
            if sum(len(piece.key) for piece in pieces) >= self._records_at_once or size >= self._bytes_at_once:
                yield _joined(pieces)
                pieces, size = [], 0
        if pieces:
            yield _joined(pieces)

    def _wanted(self) -> int:
        """Return the most messages that can be left, so that the last call does not wait for more."""
        at = list(self._open)
        most = min(MESSAGES_AT_ONCE, self._records_at_once)
        return min(most, max(1, int((self._end[at] - self._position[at]).sum())))

    def _take(self, arrivals: ArrivedMessages, pieces: list[Records]) -> bool:
        """Sort what one call returned into records and events; return whether it made progress."""
        before = len(self._open)
        piece = self._piece(arrivals)
        if len(piece.key):
            pieces.append(piece)
        if len(arrivals.key):
            self._close_finished()
        for note in arrivals.notes:
            self._note(note)
        return len(piece.key) > 0 or len(self._open) < before

    def _piece(self, arrivals: ArrivedMessages) -> Records:
        partition, offset, timestamp = arrivals.partition, arrivals.offset, arrivals.timestamp_ms
        keys, values, headers = arrivals.key, arrivals.value, arrivals.headers
        inside = (self._position[partition] <= offset) & (offset < self._end[partition])
        # For a repeated index the last assignment counts: the newest offset of each partition.
        self._position[partition] = np.maximum(self._position[partition], offset + 1)
        if not inside.all():
            at = np.flatnonzero(inside)
            partition, offset, timestamp = partition[at], offset[at], timestamp[at]
            keys, values = _chosen(keys, at), _chosen(values, at)
            headers = [headers[i] for i in at.tolist()] if headers else ()
        return Records(
            log_epoch=self._epoch[partition],
            partition=partition,
            offset=offset,
            timestamp_ms=timestamp,
            key=keys,
            value=values,
            headers=headers,
        )

    def _close_finished(self) -> None:
        finished = [p for p in self._open if self._position[p] >= self._end[p]]
        for partition in finished:
            del self._open[partition]
        if finished and self._open:
            # Unassigned, so that the client fetches nothing after the range.
            self._reading.remove(self._topic, finished)

    def _note(self, note: Note) -> None:
        """Handle one of librdkafka's events: the end of a log, a missing offset or an error."""
        code, partition = note.code, note.partition
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001
            if partition in self._open and note.offset is not None and note.offset >= self._end[partition]:
                self._position[partition] = self._end[partition]
                self._close_finished()
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):  # noqa: SLF001
            if partition in self._open:
                self._skip_lost(partition)
        elif code == KafkaError._BAD_COMPRESSION:  # noqa: SLF001
            if partition in self._open:
                self._skip_batch(partition, note.offset, note.text)
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise self._refused()
        elif code != KafkaError.GROUP_AUTHORIZATION_FAILED:  # concerns the coordinator, which a reader does not need
            self._complaint = note.text

    def _skip_lost(self, partition: int) -> None:
        """Skip offsets that the log no longer contains, and end the range at the log's current end."""
        low, high = self._log_ends(partition)
        if self._position[partition] < low:
            first, end = int(self._position[partition]), int(self._end[partition])
            self._position[partition] = min(low, end)
            self._gap(partition, first, min(low, end), "deleted from the log before it was read")
        self._shorten(partition, high)
        self._go_on(partition)

    def _skip_batch(self, partition: int, base: int | None, complaint: str) -> None:
        """Continue after a batch that cannot be decompressed. Every writer of the topic can produce one."""
        position = int(self._position[partition])
        found = batch_at(self._options, self._topic, partition, position)
        if found is None or found.base != base:
            # The error concerns a batch that is already skipped, or the end of the batch is unknown.
            self._complaint = complaint
            return
        self._position[partition] = end = min(found.end, int(self._end[partition]))
        self._gap(partition, position, end, "a compressed batch of records cannot be unpacked: broken, or too large")
        self._go_on(partition)

    def _go_on(self, partition: int) -> None:
        """Restart reading of the partition at its changed position."""
        self._reading.remove(self._topic, [partition])
        if self._position[partition] < self._end[partition]:
            self._reading.add(self._topic, partition, int(self._position[partition]))
        else:
            del self._open[partition]

    def _shorten(self, partition: int, high: int) -> None:
        """End the range at the log's current end if the log is shorter."""
        position, end = int(self._position[partition]), int(self._end[partition])
        if (reached := max(position, high)) < end:
            self._end[partition] = reached
            self._gap(partition, reached, end, "the log ends before it: the topic was recreated or truncated")

    def _gap(self, partition: int, start: int, end: int, reason: str) -> None:
        epoch = int(self._epoch[partition])
        self.gaps.append(
            Span(partition=partition, log_epoch=epoch, from_offset=start, to_offset=end, gap_reason=reason)
        )

    def _doubt(self, *, since: float) -> None:
        """Check whether the logs end before the ranges, because no records arrive; give up after `GIVE_UP_AFTER_S`."""
        for partition in self._open:
            self._shorten(partition, self._log_ends(partition)[1])
        self._close_finished()
        if self._open and time.monotonic() - since > GIVE_UP_AFTER_S:
            raise PassingError(
                f"Kafka sent nothing of {self._topic} for {GIVE_UP_AFTER_S:.0f} s"
                f"{f' ({self._complaint})' if self._complaint else ''}: check the brokers. Reading continues from here."
            )

    def _log_ends(self, partition: int) -> tuple[int, int]:
        """Return the log start offset and the end offset; (0, 0) if the partition no longer exists."""
        try:
            ends = self._asking().get_watermark_offsets(TopicPartition(self._topic, partition), RESPONSE_WITHIN_S)
        except KafkaException as error:
            unknown = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
            if error.args[0].code() in unknown and self._is_gone(partition):
                return 0, 0
            self._complaint = error.args[0].str()
            return 0, int(self._end[partition])
        return ends

    def _asking(self) -> Consumer:
        """Return a consumer for questions about the log, which are rare."""
        return kept_for(("asking", frozenset(self._options.items())), lambda: consumer(self._options))

    def _is_gone(self, partition: int) -> bool:
        """Return whether the partition is gone. librdkafka also reports partitions of a forbidden topic as unknown."""
        try:
            found = self._asking().list_topics(self._topic, RESPONSE_WITHIN_S).topics[self._topic]
        except KafkaException as error:
            self._complaint = error.args[0].str()
            return False
        if found.error is not None and found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise self._refused()
        return partition not in found.partitions

    def _refused(self) -> UserError:
        return UserError(f"Kafka does not let this user read {self._topic}: grant READ on that topic.")


def _kept_reading(options: Mapping[str, str], *, is_flat: bool, has_headers: bool) -> Reading:
    """Return this process's consumer for the cluster."""
    direct = library() if is_flat else None
    kind = "flat" if direct else "objects with headers" if has_headers else "objects"

    def made() -> Reading:
        if direct:
            try:
                return FlatReading(direct, options)
            except KafkaException as error:  # an option that confluent-kafka itself understands, or none at all
                log.warning("reading with confluent-kafka's own consumer, which is slower: %s", error.args[0].str())
        return ObjectReading(options, has_headers=has_headers)

    return kept_for((kind, frozenset(options.items())), made)


def _chosen(strings: Sequence[bytes | None], at: NDArray[np.int64]) -> Sequence[bytes | None]:
    return strings.chosen(at) if isinstance(strings, FlatBytes) else [strings[i] for i in at.tolist()]


def _size(piece: Records) -> int:
    return sum(
        each.bytes_in_all() if isinstance(each, FlatBytes) else sum(map(len, filter(None, each)))
        for each in (piece.key, piece.value)
    )


def _joined(pieces: list[Records]) -> Records:
    return Records(
        log_epoch=np.concatenate([piece.log_epoch for piece in pieces]),
        partition=np.concatenate([piece.partition for piece in pieces]),
        offset=np.concatenate([piece.offset for piece in pieces]),
        timestamp_ms=np.concatenate([piece.timestamp_ms for piece in pieces]),
        key=_joined_strings([piece.key for piece in pieces]),
        value=_joined_strings([piece.value for piece in pieces]),
        headers=[headers for piece in pieces for headers in piece.headers],
    )


def _joined_strings(pieces: Sequence[Sequence[bytes | None]]) -> Sequence[bytes | None]:
    flat = [piece for piece in pieces if isinstance(piece, FlatBytes)]
    return FlatBytes.joined(flat) if flat else [string for piece in pieces for string in piece]
