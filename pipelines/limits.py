"""Limits on what untrusted input can make Regroup build.

A client of a watched cluster chooses names, a group's leader chooses assignments, and a capture folder may come from
anybody.
"""

from __future__ import annotations

from dataclasses import dataclass

RESOURCES = 50_000
GROUPS = 100_000
NAME_BYTES = 1_024
CAPTURE_MB = 512
"""Megabytes of memory that the content of a capture folder may take."""

UNPACKED_BATCH_BYTES = 64 << 20
"""Of one batch of a log segment file. Kafka's default for a batch is 1 MB (`message.max.bytes`)."""

LINE_CHARACTERS = 4 << 20
"""Of one record as a line of JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What exceeds a limit stays in bronze and is counted, but is not built into silver.

    `resources`: partitions or tasks that the assignments in one record may list, and that its subscriptions may list.
    `groups`: groups of one cluster. `name_bytes`: bytes of a name as UTF-8, of which Kafka allows 32,767.
    """

    resources: int = RESOURCES
    groups: int = GROUPS
    name_bytes: int = NAME_BYTES


DEFAULT_LIMITS = Limits()
