"""A recorded history whose times go back by minutes, as when a coordinator's clock is behind its predecessor's."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.replay import Capture, Line
from pipelines.decoding.source_record import SourceRecord
from testing.recordings import CAPTURES

BEHIND_MS = 300_000


class Behind(Capture):
    """The recorded history; the middle third of each partition has times of a clock that is behind. The log lines are
    left out, because their times are also by the coordinator's clock.
    """

    def lines(self) -> Iterator[Line]:
        return iter(())

    def records(self) -> list[SourceRecord]:
        records = super().records()
        newest = {r.partition: r.offset for r in records}
        return [earlier(r) if 1 <= 3 * r.offset / newest[r.partition] < 2 else r for r in records]


def earlier(record: SourceRecord) -> SourceRecord:
    """Return the record with every time of the coordinator's clock moved back."""
    value = record.value
    for at in range(len(value or b"") - 7):
        described = int.from_bytes(value[at : at + 8])
        if abs(described - record.timestamp_ms) < BEHIND_MS / 2:
            value = value[:at] + (described - BEHIND_MS).to_bytes(8) + value[at + 8 :]
    return record._replace(timestamp_ms=record.timestamp_ms - BEHIND_MS, value=value)


BACK = Behind(CAPTURES / "eager_churn")
