"""A span of time in one lane, with the bounds of its ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dashboards.lake.lake import Row
from dashboards.urlstate import Window
from schemas.states import RebalanceMode

PARTIAL_MODES = (RebalanceMode.COOPERATIVE, RebalanceMode.INCREMENTAL)
"""Modes in which only moving resources stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A span in one lane. It begins within [earliest, start] and ends within [end, latest]; equal if exactly known.

    `kind` is a style or an owner's label; `proof` is a text for the tooltip.
    """

    earliest: int
    start: int
    end: int
    latest: int
    kind: str
    evidence: str
    generation: int | None = None
    incarnation: int = 0
    proof: str = ""


def clipped(segment: Segment, window: Window) -> Segment | None:
    """Return the part of the segment in the window, or None if it has no length there."""

    def inside(at: int) -> int:
        return min(max(at, window.start), window.end)

    found = replace(
        segment,
        earliest=inside(segment.earliest),
        start=inside(segment.start),
        end=inside(segment.end),
        latest=inside(segment.latest),
    )
    return found if found.latest > found.earliest else None


def proof(row: Row) -> str:
    """Return the offset of the record that proves a generation."""
    return f"__consumer_offsets-{row['source_partition']}@{row['source_offset']}"
