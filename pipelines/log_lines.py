"""Lines of a log file to bronze rows: `coordinator_events` and `quarantine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.coordinator_events import UNREAD, Unreadable
from pipelines.line_reading import read_line
from pipelines.unread_lines import sampled
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from collections.abc import Iterable
    from zoneinfo import ZoneInfo

    from pipelines.log_layouts import Layout

Row = dict[str, Any]


class PlacedLine(NamedTuple):
    """One line of a log file: its number `line_no` (from 1) in the file `source_id`.

    `broker_id` applies if the line names no broker. `is_oversized` means that the line was cut.
    """

    source_id: str
    line_no: int
    text: str
    broker_id: int | None = None
    is_oversized: bool = False


def line_rows(
    lines: Iterable[PlacedLine], *, cluster: str, layout: Layout, zone: ZoneInfo
) -> tuple[list[Row], list[Row]]:
    """Return rows of `coordinator_events` and of `quarantine`. Other lines produce no row.

    Of lines that may be lifecycle lines but are not known, `quarantine` has only a few, with their number.
    """
    events, refused = [], []
    for line in lines:
        found = read_line(line.text, layout, zone)
        if found is not None and line.is_oversized:
            found = Unreadable(QuarantineReason.OVERSIZED, "the line was cut: no lifecycle line has this length")
        if isinstance(found, Unreadable):
            refused.append(
                {
                    "cluster": cluster,
                    "source": line.source_id,
                    "log_epoch": 0,
                    "source_partition": -1,
                    "source_offset": line.line_no,
                    "reason": found.reason,
                    "detail": found.detail,
                    "raw_value": line.text.encode("utf-8", "replace"),
                    "lines": 1 if found.reason in UNREAD else None,
                }
            )
        elif found is not None:
            broker_id = line.broker_id if found.broker_id is None else found.broker_id
            position = {"cluster": cluster, "source_id": line.source_id, "line_no": line.line_no}
            events.append(found._asdict() | position | {"broker_id": broker_id})
    return events, sampled(refused)
