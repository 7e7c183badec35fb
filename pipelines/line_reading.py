"""One log line of any source to an event: removes the prefixes of container runtimes, and unwraps JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.coordinator_events import UNREAD, ParsedEvent, Unreadable, examined
from pipelines.layout_detection import unprefixed
from pipelines.log_envelopes import lines_of_json
from pipelines.log_layouts import known_layout, known_zone
from pipelines.unread_lines import unread
from schemas.states import QuarantineReason

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from pipelines.log_layouts import Layout

# JSON in Docker's json-file, and a text line in that JSON.
_DEPTH = 3


def read_line(line: str, layout: Layout, zone: ZoneInfo) -> ParsedEvent | Unreadable | None:
    """Return the event that a line describes, or None for a line that is not a lifecycle line.

    `layout` and `zone` are the settings of the line's source. The line may have another known layout, a JSON layout,
    or prefixes of a container runtime. `Unreadable` with a reason of `UNREAD` means that the line may be a lifecycle
    line but is not known; its `detail` contains the beginning of the line.
    """
    found = examined(line, layout, zone)
    if not isinstance(found, Unreadable):  # almost every line
        return found
    found, text = _inner(line, found, layout, zone, None, _DEPTH)
    if isinstance(found, Unreadable) and found.reason in UNREAD:
        return unread(text, found)
    if isinstance(found, ParsedEvent) and found.raw is not line:
        return found._replace(raw=line)
    return found


def _inner(
    line: str, outer: Unreadable, layout: Layout, zone: ZoneInfo, at: str | None, depth: int
) -> tuple[ParsedEvent | Unreadable | None, str]:
    """Return the result of `examined` for the innermost line, and that line; `outer` is the result for `line`."""
    if outer.reason != QuarantineReason.UNKNOWN_LAYOUT or not depth:
        return outer, line
    if (bare := unprefixed(line)) is not None:
        text, at = bare.text, bare.at or at
    elif inner := lines_of_json(line, at):
        text = inner[0].line
        layout = known_layout(inner[0].layout) if inner[0].layout else layout
        zone = known_zone(inner[0].zone) if inner[0].zone else zone
    else:
        return outer, line
    found = examined(text, layout, zone, at)
    return _inner(text, found, layout, zone, at, depth - 1) if isinstance(found, Unreadable) else (found, text)
