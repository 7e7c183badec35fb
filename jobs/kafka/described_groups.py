"""Descriptions of groups by their coordinators, for each protocol, through kafka-python's admin client.

librdkafka's requests to group coordinators are not used. If a broker pauses for longer than such a request may take,
librdkafka (2.16) frees the request too early and aborts the whole process (librdkafka issue 4605). kafka-python
lacks the messages of the consumer protocol (KIP-848) and of Streams (KIP-1071), so `jobs.kafka.messages` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.api_message import ApiMessage

from jobs.kafka import messages

if TYPE_CHECKING:
    from jobs.kafka.admin_client import Client

CLASSIC, CONSUMER, STREAMS = "classic", "consumer", "streams"
"""Types of groups as ListGroups has them since Kafka 3.8 (KIP-848, KIP-1071). Older brokers have only classic ones."""


class ConsumerGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """Kafka's request 69, version 0 (Kafka 3.7) or 1 (4.0)."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """The response to it."""


class StreamsGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """Kafka's request 89, version 0 (Kafka 4.1) or 1 (4.4)."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """The response to it."""


def describe(client: Client, coordinator: int, group_type: str, group_ids: Sequence[str]) -> list[Any]:
    """Return the coordinator's description of each group, with an error code in place of what it refuses.

    Raises:
        KafkaError: the broker does not respond, or does not know the request.
    """
    request = _REQUESTS[group_type](list(group_ids))
    return list(client.send_to(coordinator, request).groups)


_REQUESTS: dict[str, Callable[[list[str]], Any]] = {
    CLASSIC: lambda ids: DescribeGroupsRequest(groups=ids),
    CONSUMER: lambda ids: ConsumerGroupDescribeRequest(group_ids=ids, include_authorized_operations=False),
    STREAMS: lambda ids: StreamsGroupDescribeRequest(group_ids=ids, include_authorized_operations=False),
}
