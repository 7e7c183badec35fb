"""Headers of Kafka's record batches, read without decompressing the batch (KIP-98; `DefaultRecordBatch`).

A compressed batch of 5 kB may decompress to 150 MB. librdkafka rejects such a batch and fetches it again endlessly, and
its error does not give the offset of the next batch.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from kafka.errors import KafkaError
from kafka.protocol.consumer.fetch import FetchRequest

from jobs.config.errors import UserError
from jobs.kafka.admin_client import Client, connect

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = struct.Struct(">qiibIhi")
"""baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta."""
_BEFORE_LENGTH, _MAGIC = 12, 2
NEWEST_BY_NAME = 12
"""The last version of Fetch that names topics. Later versions use topic ids (KIP-516)."""

_clients: dict[frozenset[tuple[str, str]], Client] = {}


class BatchOffsets(NamedTuple):
    """The offsets of a batch: `base` of its first record, `end` after its last record."""

    base: int
    end: int


def batch_at(options: Mapping[str, str], topic: str, partition: int, offset: int) -> BatchOffsets | None:
    """Return the batch that contains `offset`; None if brokers do not return it, or an option has no counterpart."""
    identity = frozenset(options.items())
    try:
        if identity not in _clients:
            _clients[identity] = connect(options)
        return batch_of(_fetched(_clients[identity], topic, partition, offset), offset)
    except UserError:
        return None
    except (KafkaError, OSError):
        _clients.pop(identity).close()
        return None


def batch_of(raw: bytes, offset: int) -> BatchOffsets | None:
    """Return the batch in `raw` that contains `offset`; None if there is none. `raw` starts with a batch header."""
    position = 0
    while position + _HEADER.size <= len(raw):
        base, length, _, magic, _, _, last = _HEADER.unpack_from(raw, position)
        if magic != _MAGIC or length <= 0:
            return None
        if base <= offset <= base + last:
            return BatchOffsets(base, base + last + 1)
        position += _BEFORE_LENGTH + length
    return None


def _fetched(client: Client, topic: str, partition: int, offset: int) -> bytes:
    """Return the leader's records from `offset` on: at least one whole batch, and little more (KIP-74).

    They are empty if the brokers do not know the partition.
    """
    described = (each for found in client.describe_topics([topic]) for each in found["partitions"])
    leader = next((each["leader_id"] for each in described if each["partition_index"] == partition), None)
    if leader is None:
        return b""
    wanted = FetchRequest.FetchTopic.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1,
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=1_000,
        min_bytes=1,
        max_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
        forgotten_topics_data=[],
        rack_id="",
        max_version=NEWEST_BY_NAME,
    )
    response = client.send_to(leader, request)
    fetched = (each for found in response.responses for each in found.partitions)
    return next((bytes(each.records or b"") for each in fetched if each.partition_index == partition), b"")
