"""A recorded rejoin loop that goes on: the last record again and again, with the next generation and its times."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.decoding.source_record import SourceRecord

NUMBER_AT = 2 + 2
"""Bytes before the protocol type's text in a GroupMetadataValue of versions 0 to 3, which are not compact: the
version and the text's length. The generation follows the text."""

SYNC_MS = 1
"""Milliseconds from the end of the join phase to the record."""


def going_on(last: SourceRecord, count: int, apart_ms: int, after_ms: int | None = None) -> Iterator[SourceRecord]:
    """Yield `count` generations that differ from `last` (a GroupMetadata record) in number, offset and times only.

    The first one is `apart_ms` after `last`, or after the time `after_ms`.
    """
    value = last.value
    assert value is not None
    number_at = NUMBER_AT + int.from_bytes(value[2:4])
    number, time_at = int.from_bytes(value[number_at : number_at + 4]), _time_at(value, last.timestamp_ms)
    for nth in range(1, count + 1):
        at = (last.timestamp_ms if after_ms is None else after_ms) + nth * apart_ms
        began, generation = (at - SYNC_MS).to_bytes(8), (number + nth).to_bytes(4)
        next_value = value[:number_at] + generation + value[number_at + 4 : time_at] + began + value[time_at + 8 :]
        yield last._replace(offset=last.offset + nth, timestamp_ms=at, value=next_value)


def _time_at(value: bytes, near_ms: int) -> int:
    """Return where the only time near `near_ms` begins: currentStateTimestamp."""
    found = [at for at in range(len(value) - 7) if 0 <= near_ms - int.from_bytes(value[at : at + 8]) < 60_000]
    (at,) = found
    return at
