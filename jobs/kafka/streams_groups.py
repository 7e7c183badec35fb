"""The description of groups with `group.protocol=streams` (KIP-1071): neither client library has its message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.api_message import ApiMessage

from jobs.kafka import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobs.kafka.admin_client import Client


class StreamsGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """Kafka's request 89, version 0 (Kafka 4.1) or 1 (4.4)."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """The response to it."""


def describe(client: Client, coordinator: int, group_ids: Sequence[str]) -> list[Any]:
    """Return the coordinator's description of each group, with an error code in place of what it refuses.

    Raises:
        KafkaError: the broker does not respond, or does not know the request.
    """
    request = StreamsGroupDescribeRequest(group_ids=list(group_ids), include_authorized_operations=False)
    return list(client.send_to(coordinator, request).groups)
