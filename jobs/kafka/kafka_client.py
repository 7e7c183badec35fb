"""Read-only Kafka clients: their options, the ends of topics, and sentences for errors."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from jobs.config.errors import PassingError, UserError
from schemas.records import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

RESPONSE_WITHIN_S = 15.0
ASK_ONCE_S = 5.0
ASK_AGAIN_S = 0.25
# Errors while a broker is lost, or while brokers disagree about a partition's leader.
PASSING = {
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._NOENT,  # noqa: SLF001 - none of the requested partitions has a leader
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
}

REFUSED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)  # noqa: SLF001

# Options that correct reading depends on, so settings cannot change them. librdkafka requires a group id, but a reader
# that assigns partitions and never commits does not join the group.
FIXED = {
    "group.id": "regroup-reader",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    # With `read_committed`, one open transaction would hide the rest of a partition, including group records.
    "isolation.level": "read_uncommitted",
}
# When a partition's queue is full, librdkafka by default waits a second before the next fetch, which makes it four
# times slower. A short queue limits the records fetched after the end of a range and then discarded.
TUNED = {
    "fetch.queue.backoff.ms": 10,
    "fetch.wait.max.ms": 100,
    "queued.min.messages": 20_000,
    "log_level": 0,
}

_SILENT = logging.getLogger(__name__)
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

Kept = TypeVar("Kept")
_kept: dict[object, Any] = {}
"""The clients of this process. A new one would connect and load the metadata in every batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEnds:
    """The ends of a topic. `ends`: (log start offset, offset of the next record) by partition. `topic_id`: None if
    brokers have no topic ids.
    """

    topic_id: str | None
    ends: Mapping[int, tuple[int, int]]


def reader_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a consumer: the user's own take precedence over `TUNED`, and `FIXED` over both."""
    return {**TUNED, **options, **FIXED}


def kept_for(identity: object, made: Callable[[], Kept]) -> Kept:
    """Return the object that this process keeps for `identity`, such as the kind and options of a client; make it if
    missing.
    """
    if identity not in _kept:
        _kept[identity] = made()
    found: Kept = _kept[identity]
    return found


def forget(identity: object) -> None:
    """Drop the object that is kept for `identity`."""
    _kept.pop(identity, None)


def consumer(options: Mapping[str, str]) -> Consumer:
    """Return a consumer that reads assigned partitions and commits nothing.

    Raises:
        UserError: librdkafka does not accept an option.
    """
    with _named_options(options):
        return Consumer(reader_options(options), logger=_SILENT)


def admin(options: Mapping[str, Any]) -> AdminClient:
    """Return an admin client.

    Raises:
        UserError: librdkafka does not accept an option.
    """
    with _named_options(options):
        return AdminClient({"log_level": 0, **options}, logger=_SILENT)


@contextmanager
def _named_options(options: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise UserError(
            f"The Kafka options for {options.get('bootstrap.servers', '')} cannot be used "
            f"({error.args[0].str().strip()}): correct them in the settings file."
        ) from None


def cluster_id(options: Mapping[str, str]) -> str:
    """Return Kafka's own id of the cluster.

    Raises:
        UserError: no broker responds, the brokers refuse this client, or an option is not valid.
    """
    errors: list[KafkaError] = []
    client = admin({**options, "error_cb": errors.append})
    try:
        return str(client.describe_cluster(request_timeout=RESPONSE_WITHIN_S).result().cluster_id)
    except KafkaException as error:
        # The exception of the call only reports a timeout.
        client.poll(0)
        why = next((each for each in errors if each.code() in REFUSED), error.args[0])
        raise unreachable(options, why) from None


def topic_ends(client: AdminClient, topic: str) -> TopicEnds | None:
    """Return the current start and end offsets of the topic's partitions; None if the topic does not exist.

    Never creates a topic. Temporary errors are retried for up to `RESPONSE_WITHIN_S`.

    Raises:
        KafkaException: any other error of the brokers, or no response.
    """
    until = time.monotonic() + RESPONSE_WITHIN_S
    while True:
        try:
            return _ends(client, topic)
        except KafkaException as error:
            if error.args[0].code() not in PASSING or time.monotonic() > until:
                raise
        time.sleep(ASK_AGAIN_S)
        # A client keeps its known brokers, even one that is gone, until it requests the metadata of all topics.
        with suppress(KafkaException):
            client.list_topics(timeout=ASK_ONCE_S)


def _ends(client: AdminClient, topic: str) -> TopicEnds | None:
    try:
        future = client.describe_topics(TopicCollection([topic]), request_timeout=ASK_ONCE_S)[topic]
        described = future.result()
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise
    partitions = [partition.id for partition in described.partitions]
    low = _offsets(client, topic, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    high = _offsets(client, topic, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    identity = str(described.topic_id) if described.topic_id else None
    return TopicEnds(topic_id=identity, ends={p: (low[p], high[p]) for p in partitions})


def _offsets(client: AdminClient, topic: str, partitions: Iterable[int], spec: OffsetSpec) -> dict[int, int]:
    wanted = {TopicPartition(topic, partition): spec for partition in partitions}
    futures = client.list_offsets(wanted, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=ASK_ONCE_S)
    found = {at.partition: future.result().offset for at, future in futures.items()}
    if min(found.values(), default=0) < 0:
        # The client reports a partition without a leader as a negative offset, without an error.
        raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    return found


def unreachable(options: Mapping[str, str], error: KafkaError, topic: str = OFFSETS_TOPIC) -> UserError:
    """Return the error for a cluster that does not respond to this client, or refuses it. The client reads `topic`."""
    servers = options.get("bootstrap.servers", "")
    if error.code() in REFUSED:
        return UserError(f"Kafka at {servers} refuses these credentials: check the sasl options in the settings file.")
    if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
        return UserError(f"Kafka at {servers} does not let this user read its topics: grant READ on topic {topic}.")
    return PassingError(
        f"No Kafka broker answers at {servers} ({error.str()}): check --bootstrap-servers, the network and, for TLS, "
        "security.protocol and ssl.ca.location in the settings file."
    )
