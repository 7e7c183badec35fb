"""Limits on the work that untrusted input can cause.

Clients of a monitored cluster choose names, group leaders choose assignments, and a capture folder may come from
anybody.
"""

from __future__ import annotations

from dataclasses import dataclass

RESOURCES = 50_000
GROUPS = 100_000
NAME_BYTES = 1_024
CAPTURE_MB = 512
"""Maximum memory in megabytes for the content of a capture folder."""

UNPACKED_BATCH_BYTES = 64 << 20
"""Maximum unpacked size in bytes of one batch in a log segment file. Kafka's default maximum for a batch is 1 MB
(`message.max.bytes`).
"""

LINE_CHARACTERS = 4 << 20
"""Maximum length in characters of one record as a line of JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of silver. Input that exceeds a limit stays in bronze and is counted, but does not get into silver.

    `resources`: maximum count of partitions or tasks that the assignments of one record may list; the same limit
    applies to its subscriptions. `groups`: maximum count of groups of one cluster. `name_bytes`: maximum length of a
    name in UTF-8 bytes (Kafka allows 32,767).
    """

    resources: int = RESOURCES
    groups: int = GROUPS
    name_bytes: int = NAME_BYTES


DEFAULT_LIMITS = Limits()
