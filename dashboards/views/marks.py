"""Marks in words: what people announced, and how long after it something began."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.lake.lake import Row
from dashboards.text import between, visible
from dashboards.views.theme import FLAGS, Glyph
from schemas.states import MarkKind

NEAR_MS = 15 * 60_000
"""Further apart, a mark says nothing of what follows."""


def flag_of(mark: Row) -> Glyph:
    """Its character and word."""
    return next((flag for kind, flag in FLAGS.items() if kind == mark["kind"]), FLAGS[MarkKind.OTHER])


def name(mark: Row) -> str:
    """`the deploy “v2.31”`."""
    return f"the {flag_of(mark).word} “{visible(mark['text'], 80)}”"


def mark_subject(mark: Row) -> str:
    """Which group, or the whole cluster."""
    return "the whole cluster" if mark["group_id"] is None else visible(mark["group_id"], 80)


def time_since_mark(marks: Sequence[Row], earliest: int, latest: int) -> str:
    """How long after the newest mark before it something began that began within the bounds; with a space in front.

    Nothing where no mark is near.
    """
    near = [m for m in marks if earliest - NEAR_MS <= m["marked_at"] <= latest]
    if not near:
        return ""
    last = max(near, key=lambda m: m["marked_at"])
    if last["marked_at"] > earliest:
        return f" It began near {name(last)}, which lies between the earliest and the latest possible start."
    return f" It began {between(earliest - last['marked_at'], latest - last['marked_at'])} after {name(last)}."
