"""librdkafka's C functions of the library that confluent-kafka uses, and a check of its messages in memory.

confluent-kafka makes a Python object of every message. A message is plain memory, so that NumPy can read the fields of
many messages at once (`jobs.kafka.native_consumer`). `rd_kafka_message_t` is public (rdkafka.h); the timestamp follows
in librdkafka's own part of a message. `library` therefore checks both with a message that it makes itself.
"""

from __future__ import annotations

import ctypes
import logging
import time
from functools import cache
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, cimpl, libversion
from numpy.typing import NDArray

log = logging.getLogger(__name__)

MESSAGE = np.dtype(
    {
        "names": ["error", "partition", "value", "value_size", "key", "key_size", "offset", "timestamp_ms"],
        "formats": ["i4", "i4", "u8", "i8", "u8", "i8", "i8", "i8"],
        "offsets": [0, 16, 24, 32, 40, 48, 56, 96],
        "itemsize": 104,
    }
)
"""The fields of a message in memory on a 64-bit machine; `value` and `key` are addresses, 0 for null."""

PRODUCER, CONSUMER = 0, 1
COPY, PURGE_QUEUE = 2, 1
PURGED, NO_OFFSET = -152, -1001
RETURNED_WITHIN_MS = 1_000
DELIVERY_REPORTS = 1
TEXT_BYTES = 512

_P, _TEXT, _INT, _LONG, _SIZE = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "version": (_INT,),
    "conf_new": (_P,),
    "conf_set": (_INT, _P, _TEXT, _TEXT, _TEXT, _SIZE),
    "conf_set_log_cb": (None, _P, _P),
    "conf_set_events": (None, _P, _INT),
    "conf_destroy": (None, _P),
    "new": (_P, _INT, _P, _TEXT, _SIZE),
    "destroy": (None, _P),
    "poll_set_consumer": (_INT, _P),
    "queue_get_consumer": (_P, _P),
    "queue_get_main": (_P, _P),
    "queue_destroy": (None, _P),
    "queue_poll": (_P, _P, _INT),
    "event_message_next": (_P, _P),
    "event_destroy": (None, _P),
    "topic_new": (_P, _P, _TEXT, _P),
    "topic_destroy": (None, _P),
    "produce": (_INT, _P, ctypes.c_int32, _INT, _P, _SIZE, _P, _SIZE, _P),
    "purge": (_INT, _P, _INT),
    "topic_partition_list_new": (_P, _INT),
    "topic_partition_list_destroy": (None, _P),
    "topic_partition_list_add": (_P, _P, _TEXT, ctypes.c_int32),
    "topic_partition_list_set_offset": (_INT, _P, _TEXT, ctypes.c_int32, _LONG),
    "assign": (_INT, _P, _P),
    "incremental_assign": (_P, _P, _P),
    "incremental_unassign": (_P, _P, _P),
    "error_code": (_INT, _P),
    "error_destroy": (None, _P),
    "last_error": (_INT,),
    "consume_batch_queue": (ctypes.c_ssize_t, _P, _INT, _P, _SIZE),
    "message_errstr": (_TEXT, _P),
    "message_destroy": (None, _P),
}


class Librdkafka:
    """The functions of librdkafka by their names without `rd_kafka_`.

    Raises:
        AttributeError: the library lacks one of them.
    """

    def __init__(self) -> None:
        # Finds the functions in the libraries that confluent-kafka was linked with, too, wherever they are.
        free, bound = ctypes.CDLL(cimpl.__file__), ctypes.PyDLL(cimpl.__file__)
        for name, (result, *arguments) in _FUNCTIONS.items():
            # Freeing a message takes less time than giving up Python's lock for it.
            function = getattr(bound if name == "message_destroy" else free, f"rd_kafka_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def client(self, kind: int, options: dict[str, Any], *, events: int = 0) -> int:
        """Return the address of a new client that writes no logs.

        Raises:
            KafkaException: librdkafka does not accept an option.
        """
        text = ctypes.create_string_buffer(TEXT_BYTES)
        settings = self.conf_new()
        for name, value in options.items():
            written = str(value).lower() if isinstance(value, bool) else str(value)
            if self.conf_set(settings, name.encode(), written.encode(), text, TEXT_BYTES):
                self.conf_destroy(settings)
                raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text.value.decode()))  # noqa: SLF001
        self.conf_set_log_cb(settings, None)
        if events:
            self.conf_set_events(settings, events)
        client = self.new(kind, settings, text, TEXT_BYTES)
        if not client:
            self.conf_destroy(settings)
            raise KafkaException(KafkaError(KafkaError._INVALID_ARG, text.value.decode()))  # noqa: SLF001
        return int(client)


@cache
def library() -> Librdkafka | None:
    """Return librdkafka if its messages in memory are as expected; else write one warning and return None."""
    try:
        found = Librdkafka()
        why = _difference(found)
    except (AttributeError, OSError, KafkaException) as error:
        why = f"{type(error).__name__}: {error}"
    if not why:
        return found
    log.warning(
        "reading with confluent-kafka's own consumer, which is slower: librdkafka %s cannot be used directly (%s)",
        libversion()[0],
        why,
    )
    return None


def memory(address: int, size: int, item: int) -> NDArray[np.void]:
    """Return the items of `item` bytes at every address from `address` up to `size` bytes later, without a copy.

    Only items that are messages, keys or values may be read.
    """
    return np.asarray(_Memory(address, size + 1, item))


class _Memory:
    """Memory that another library owns, in NumPy's array interface."""

    def __init__(self, address: int, count: int, item: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": (count,),
            "strides": (1,),
            "typestr": f"|V{item}",
        }


def messages_at(addresses: NDArray[np.uint64]) -> NDArray[np.void]:
    """Return the fields `MESSAGE` of the messages at these addresses; at least one."""
    first, last = int(addresses.min()), int(addresses.max())
    found: NDArray[np.void] = memory(first, last - first, MESSAGE.itemsize)[addresses - np.uint64(first)].view(MESSAGE)
    return found


def _difference(library: Librdkafka) -> str:
    """Return the difference of a message in memory from the one expected; an empty text if there is none.

    The message goes to a producer without brokers, which returns it as not delivered.
    """
    if library.version() != libversion()[1] or ctypes.sizeof(_P) != 8:
        return "it is another library, or not for 64 bits"
    key, value, partition = b"a key", b"its value", 7
    client = library.client(PRODUCER, {"log_level": 0}, events=DELIVERY_REPORTS)
    topic = library.topic_new(client, b"regroup-check", None)
    queue = library.queue_get_main(client)
    began = int(time.time() * 1000)
    event = None
    try:
        if library.produce(topic, partition, COPY, value, len(value), key, len(key), None):
            return "a message could not be made"
        library.purge(client, PURGE_QUEUE)
        event = library.queue_poll(queue, RETURNED_WITHIN_MS)
        message = library.event_message_next(event) if event else None
        if not message:
            return "a message was not returned"
        found = messages_at(np.array([message], np.uint64))[0]
        fields = {name: int(found[name]) for name in ("error", "partition", "key_size", "value_size", "offset")}
        sizes = {"key_size": len(key), "value_size": len(value)}
        if fields != {"error": PURGED, "partition": partition, "offset": NO_OFFSET, **sizes}:
            return f"a message is {fields}"
        texts = [bytes(memory(int(found[name]), 0, len(text))[0]) for name, text in (("key", key), ("value", value))]
        if texts != [key, value] or not began <= int(found["timestamp_ms"]) <= int(time.time() * 1000):
            return "key, value or timestamp of a message are elsewhere"
        return ""
    finally:
        if event:
            library.event_destroy(event)
        library.queue_destroy(queue)
        library.topic_destroy(topic)
        library.destroy(client)
