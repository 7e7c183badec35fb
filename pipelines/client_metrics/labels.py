"""The labels that identify the client whose metrics were pushed.

A client adds its group and member id to its metrics. Only the broker knows everything else that identifies the client;
the broker's plugin adds those labels, under names that each plugin chooses. KIP-714 recommends names for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

LONGEST = 1_000
"""Maximum length of a label, in characters. A longer one is left out."""

NAMES: Mapping[str, str] = {
    "group_id": "group_id",
    "group_member_id": "member_id",  # Java (ClientTelemetryProvider)
    "member_id": "member_id",  # librdkafka (rdkafka_telemetry_encode.c)
    "group_instance_id": "group_instance_id",
    "client_rack": "client_rack",
    "client_instance_id": "client_instance_id",
    "client_id": "client_id",
    "client_software_name": "software_name",
    "client_software_version": "software_version",
}
"""Columns by the names of labels, in the spelling of KIP-714."""

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Labels(NamedTuple):
    """The labels of one client. Only consumers in a group have a `group_id`."""

    group_id: str | None = None
    member_id: str | None = None
    client_instance_id: str | None = None
    group_instance_id: str | None = None
    client_id: str | None = None
    client_rack: str | None = None
    software_name: str | None = None
    software_version: str | None = None


def labels(*attributes: Mapping[str, Any]) -> Labels:
    """Return the labels in attributes of a resource and of a data point. If both have a label, the latter counts."""
    found: dict[str, str] = {}
    for named in attributes:
        for name, value in named.items():
            column = NAMES.get(_spelled(name))
            if column is not None and isinstance(value, str) and 0 < len(value) <= LONGEST:
                found[column] = value
    return Labels(**found)


def is_label(name: str) -> bool:
    """Return whether an attribute of this name is a label that is kept."""
    return _spelled(name) in NAMES


def _spelled(name: str) -> str:
    """Return `client_id` for `clientId`, `client.id`, `kafka.client.id` and `client-id`."""
    return _CAPITAL.sub("_", name[:LONGEST]).lower().replace(".", "_").replace("-", "_").removeprefix("kafka_")
