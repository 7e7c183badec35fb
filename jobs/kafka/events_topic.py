"""Sending to the events topic, with only the permission to write to it."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from jobs.config.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobs.config.clusters import Cluster

RESPONSE_WITHIN_S = 15.0
KNOWN_WITHIN_S = 10.0
SENT_WITHIN_S = 60.0

# librdkafka's log is silenced, because the error sentence already has its content.
_SILENT = logging.getLogger(__name__)
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class EventsTopic:
    """The events topic of one cluster.

    Raises:
        UserError: in every method, if the broker, the topic, the permission or a valid setting is missing.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._topic = topic
        self._servers = cluster.bootstrap_servers
        self._error: KafkaError | None = None
        self._producer = _producer(cluster)
        self._check()

    def send(self, envelope: Mapping[str, Any], key: str | None = None) -> None:
        """Queue one JSON object for sending. A failed delivery raises in `flush`."""
        value = json.dumps(envelope, ensure_ascii=False).encode("utf-8", "replace")
        while True:
            try:
                self._producer.produce(self._topic, value=value, key=key, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise self._sentence(error.args[0]) from None
            else:
                break
        self._producer.poll(0)

    def deliver(self, messages: Sequence[bytes]) -> None:
        """Send messages, and return after the broker has acknowledged all of them. Several threads may call this."""
        outcomes: list[KafkaError | None] = []
        for message in messages:
            try:
                self._producer.produce(self._topic, value=message, on_delivery=lambda error, _: outcomes.append(error))
            except BufferError:
                raise UserError(f"Kafka at {self._servers} accepts messages too slowly: send again later.") from None
            except KafkaException as error:
                raise self._sentence(error.args[0]) from None
        while len(outcomes) < len(messages):
            # Calls back for the messages of all threads.
            self._producer.poll(0.05)
        failed = next((error for error in outcomes if error is not None), None)
        if failed is not None:
            raise self._sentence(failed)

    def flush(self) -> None:
        """Return after the broker has acknowledged all messages."""
        left = self._producer.flush(SENT_WITHIN_S + RESPONSE_WITHIN_S)
        if self._error is not None:
            raise self._sentence(self._error)
        if left:
            raise UserError(
                f"Kafka at {self._servers} did not accept {left} messages: check that it is up, then start again."
            )

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        self._error = self._error or error

    def _check(self) -> None:
        """Wait for the topic, because a new topic is not known to all brokers at once."""
        given_up_at = time.monotonic() + KNOWN_WITHIN_S
        while (error := self._topic_error()) is not None:
            unknown = error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001 - librdkafka's own codes
            if not unknown or time.monotonic() > given_up_at:
                raise self._sentence(error)
            time.sleep(0.2)

    def _topic_error(self) -> KafkaError | None:
        try:
            error: KafkaError | None = (
                self._producer.list_topics(self._topic, RESPONSE_WITHIN_S).topics[self._topic].error
            )
        except KafkaException as failure:
            raise self._sentence(failure.args[0]) from None
        return error

    def _sentence(self, error: KafkaError) -> UserError:
        match error.code():
            case KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return UserError(f"No permission to write to the topic {self._topic}: grant WRITE on it.")
            case KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                return UserError("Brokers before 3.0 need another permission: grant IDEMPOTENT_WRITE on the cluster.")
            case KafkaError.UNKNOWN_TOPIC_OR_PART | KafkaError._UNKNOWN_TOPIC:  # noqa: SLF001 - librdkafka's own codes
                return UserError(
                    f"There is no topic {self._topic} at {self._servers}: create it, or name another --topic."
                )
            case KafkaError.SASL_AUTHENTICATION_FAILED | KafkaError._AUTHENTICATION:  # noqa: SLF001
                return UserError(f"Kafka at {self._servers} refused the login: check the cluster's kafka settings.")
            case _:
                return UserError(
                    f"Kafka at {self._servers} cannot be written to ({error.str()}): check address and state."
                )


def _producer(cluster: Cluster) -> Producer:
    try:
        return Producer(
            cluster.client()
            | {
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 50,
                "message.timeout.ms": int(SENT_WITHIN_S * 1000),
                "logger": _SILENT,
            }
        )
    except KafkaException as error:
        raise UserError(
            f"The kafka settings of the cluster {cluster.name} cannot be used ({error.args[0].str()}): correct them."
        ) from None
