"""One record of a Kafka topic, independent of its source."""

from __future__ import annotations

from typing import NamedTuple


class SourceRecord(NamedTuple):
    """One record as Kafka delivers it. `timestamp_ms` is negative if it has none; a null value is a tombstone."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
