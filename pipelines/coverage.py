"""Offset ranges that were read or missed: the table `coverage`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelines.decoding.record_times import utc_datetime


@dataclass(slots=True, kw_only=True)
class Span:
    """Offsets `from_offset` to `to_offset` (exclusive) of one partition, with counts of the records read.

    If `gap_reason` is set, the range was not read.
    """

    partition: int
    log_epoch: int
    from_offset: int
    to_offset: int
    gap_reason: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    records: int = 0
    skipped: int = 0
    quarantined: int = 0

    def add(self, *, first_ms: int, last_ms: int, records: int, skipped: int = 0) -> None:
        """Add the counts of records read; `first_ms` and `last_ms` are the times of the first and the last record."""
        self.first_ms = first_ms if self.first_ms is None else self.first_ms
        self.last_ms = last_ms
        self.records += records
        self.skipped += skipped

    def row(self, cluster: str, source: str) -> dict[str, Any]:
        return {
            "cluster": cluster,
            "source": source,
            "source_partition": self.partition,
            "log_epoch": self.log_epoch,
            "from_offset": self.from_offset,
            "to_offset": self.to_offset,
            "is_gap": self.gap_reason is not None,
            "gap_reason": self.gap_reason,
            "from_at": utc_datetime(self.first_ms),
            "to_at": utc_datetime(self.last_ms),
            "records": self.records,
            "skipped": self.skipped,
            "quarantined": self.quarantined,
        }
