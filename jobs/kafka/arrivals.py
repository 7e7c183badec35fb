"""What one call of a consumer returns, as columns; and confluent-kafka's consumer, which makes objects of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from confluent_kafka import Consumer, Message, TopicPartition
from numpy.typing import NDArray

from jobs.kafka.kafka_client import consumer


class Note(NamedTuple):
    """An event of librdkafka that is no record: its code, its text, and the partition and offset that it names."""

    code: int
    text: str
    partition: int
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedMessages:
    """Records as columns, as in `pipelines.bronze_batch.Records`, and notes. `headers` is empty if not requested."""

    partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    key: Sequence[bytes | None]
    value: Sequence[bytes | None]
    headers: Sequence[Sequence[tuple[str, bytes | None]]] = ()
    notes: Sequence[Note] = ()


class Reading(Protocol):
    """A consumer that assigns partitions of one topic and never commits.

    Raises:
        KafkaException: librdkafka refuses a call.
    """

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on, and no others."""

    def unassign(self) -> None:
        """Read nothing more."""

    def add(self, topic: str, partition: int, offset: int) -> None:
        """Read a further partition."""

    def remove(self, topic: str, partitions: Sequence[int]) -> None:
        """Read these partitions no longer."""

    def take(self, most: int, timeout_s: float) -> ArrivedMessages:
        """Return at most `most` messages; none after the timeout."""


class ObjectReading:
    """Reads with confluent-kafka's consumer, which makes objects of messages: the reference for all other ways."""

    def __init__(self, options: Mapping[str, str], *, has_headers: bool = False) -> None:
        self._consumer: Consumer = consumer(options)
        self.has_headers = has_headers

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        self._consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])

    def unassign(self) -> None:
        self._consumer.unassign()

    def add(self, topic: str, partition: int, offset: int) -> None:
        self._consumer.incremental_assign([TopicPartition(topic, partition, offset)])

    def remove(self, topic: str, partitions: Sequence[int]) -> None:
        self._consumer.incremental_unassign([TopicPartition(topic, partition) for partition in partitions])

    def take(self, most: int, timeout_s: float) -> ArrivedMessages:
        messages = self._consumer.consume(most, timeout_s)
        keys = [message.key() for message in messages]
        notes: list[Note] = []
        if None in keys:  # a null key, or no record at all
            notes = [_note(message) for message in messages if message.error()]
            messages = [message for message in messages if not message.error()]
            keys = [message.key() for message in messages]
        return ArrivedMessages(
            partition=np.array([message.partition() for message in messages], np.int32),
            offset=np.array([message.offset() for message in messages], np.int64),
            timestamp_ms=np.array([message.timestamp()[1] for message in messages], np.int64),
            key=keys,
            value=[message.value() for message in messages],
            headers=[_headers(message) for message in messages] if self.has_headers else (),
            notes=notes,
        )


def _note(message: Message) -> Note:
    error, partition = message.error(), message.partition()
    assert error is not None
    return Note(error.code(), error.str(), -1 if partition is None else partition, message.offset())


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    found: Any = message.headers()  # a list of pairs, though its type also allows a dictionary
    return found or []
