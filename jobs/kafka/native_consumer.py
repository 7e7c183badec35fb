"""Reads messages of librdkafka as columns: NumPy copies fields, keys and values of many messages at once from memory.

No Python object is made of a record. What a call returns is the same as with `jobs.kafka.arrivals.ObjectReading`.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
from confluent_kafka import KafkaError, KafkaException
from numpy.typing import NDArray

from jobs.kafka.arrivals import ArrivedMessages, Note
from jobs.kafka.kafka_client import reader_options
from jobs.kafka.librdkafka import CONSUMER, MESSAGE, Librdkafka, memory, messages_at
from pipelines.decoding.flat_bytes import PAD, FlatBytes

LARGE, FEW = 4_096, 8
"""Strings of one size are copied together: most keys and values have one of a few sizes. Larger strings, and sizes that
fewer strings have, are copied one by one. NumPy cannot describe all of the memory as items of any size.
"""


class FlatReading:
    """A consumer whose keys and values are `FlatBytes`.

    Raises:
        KafkaException: librdkafka does not accept an option, or refuses a call.
    """

    def __init__(self, library: Librdkafka, options: Mapping[str, str]) -> None:
        self._library = library
        self._client = library.client(CONSUMER, reader_options(options))
        library.poll_set_consumer(self._client)
        self._queue = library.queue_get_consumer(self._client)
        self._addresses = np.zeros(0, np.uint64)

    def assign(self, topic: str, offsets: Mapping[int, int]) -> None:
        with self._partitions(topic, offsets) as listed:
            self._check(self._library.assign(self._client, listed))

    def unassign(self) -> None:
        self._check(self._library.assign(self._client, None))

    def add(self, topic: str, partition: int, offset: int) -> None:
        with self._partitions(topic, {partition: offset}) as listed:
            self._check_error(self._library.incremental_assign(self._client, listed))

    def remove(self, topic: str, partitions: Sequence[int]) -> None:
        with self._partitions(topic, dict.fromkeys(partitions, 0)) as listed:
            self._check_error(self._library.incremental_unassign(self._client, listed))

    def take(self, most: int, timeout_s: float) -> ArrivedMessages:
        if len(self._addresses) < most:
            self._addresses = np.zeros(most, np.uint64)
        start = self._addresses.ctypes.data
        count = self._library.consume_batch_queue(self._queue, int(timeout_s * 1000), start, most)
        if count < 0:
            self._check(self._library.last_error())
        if count <= 0:
            return _columns(np.zeros(0, MESSAGE), [])
        addresses = self._addresses[:count]
        try:
            return self._arrived(addresses)
        finally:
            deque(map(self._library.message_destroy, addresses.tolist()), 0)

    def close(self) -> None:
        """Leave the brokers."""
        self._library.queue_destroy(self._queue)
        self._library.destroy(self._client)

    def _arrived(self, addresses: NDArray[np.uint64]) -> ArrivedMessages:
        found = messages_at(addresses)
        is_note = found["error"] != 0
        if not is_note.any():
            return _columns(found, [])
        notes = zip(addresses[is_note].tolist(), found[is_note], strict=True)
        return _columns(found[~is_note], [self._note(address, fields) for address, fields in notes])

    def _note(self, address: int, found: np.void) -> Note:
        text = self._library.message_errstr(address).decode("utf-8", "replace")
        return Note(int(found["error"]), text, int(found["partition"]), int(found["offset"]))

    @contextmanager
    def _partitions(self, topic: str, offsets: Mapping[int, int]) -> Iterator[int]:
        listed = self._library.topic_partition_list_new(len(offsets))
        try:
            for partition, offset in offsets.items():
                self._library.topic_partition_list_add(listed, topic.encode(), partition)
                self._library.topic_partition_list_set_offset(listed, topic.encode(), partition, offset)
            yield listed
        finally:
            self._library.topic_partition_list_destroy(listed)

    def _check(self, code: int) -> None:
        if code:
            raise KafkaException(KafkaError(code))

    def _check_error(self, error: int | None) -> None:
        if error:
            code = self._library.error_code(error)
            self._library.error_destroy(error)
            raise KafkaException(KafkaError(code))


def _columns(found: NDArray[np.void], notes: Sequence[Note]) -> ArrivedMessages:
    """Return the records with these fields `MESSAGE`; none of them may be an event."""
    return ArrivedMessages(
        partition=found["partition"].copy(),
        offset=found["offset"].copy(),
        timestamp_ms=found["timestamp_ms"].copy(),
        key=copied(found["key"], found["key_size"]),
        value=copied(found["value"], found["value_size"]),
        notes=notes,
    )


def copied(address: NDArray[np.uint64], size: NDArray[np.int64]) -> FlatBytes:
    """Return copies of the strings at these addresses, which are 0 for None."""
    used = np.where(address == 0, 0, size)
    start = np.cumsum(used) - used
    data = np.zeros(int(used.sum()) + len(PAD), np.uint8)
    order = np.argsort(used, kind="stable")
    ordered = used[order]
    edges = [*np.flatnonzero(np.diff(ordered, prepend=-1)).tolist(), len(ordered)]
    for first, end in pairwise(edges):
        item, at = int(ordered[first]), order[first:end]
        if item > LARGE or len(at) < FEW:
            for one in at.tolist():
                ctypes.memmove(data.ctypes.data + int(start[one]), int(address[one]), item)
        elif item:
            least, most = int(address[at].min()), int(address[at].max())
            to = np.ndarray((len(data) - item + 1,), f"V{item}", data, strides=(1,))
            to[start[at]] = memory(least, most - least, item)[address[at] - np.uint64(least)]
    return FlatBytes(data, start, np.where(address == 0, -1, used))
