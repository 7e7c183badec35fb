"""Marks in words: what people announced, and the time from a mark to a later start."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.lake.lake import Row
from dashboards.text import between, visible
from dashboards.views.theme import FLAGS, Glyph
from schemas.states import MarkKind
from schemas.written import count

NEAR_MS = 15 * 60_000
"""A mark further away than this is not mentioned."""


NAMED = 3
"""The highest number of a mark's groups that are shown by name."""


def flag_of(mark: Row) -> Glyph:
    """Return the mark's character and word."""
    return next((flag for kind, flag in FLAGS.items() if kind == mark["kind"]), FLAGS[MarkKind.OTHER])


def name(mark: Row) -> str:
    """Return `the deploy “v2.31”`."""
    return f"the {flag_of(mark).word} “{visible(mark['text'], 80)}”"


def mark_subject(mark: Row) -> str:
    """Return the mark's groups, at most three of them by name, or the whole cluster."""
    groups: Sequence[str] = mark["group_ids"]
    if not len(groups):
        return "the whole cluster"
    named = ", ".join(visible(group, 80) for group in groups[:NAMED])
    return named if len(groups) <= NAMED else f"{named} and {count(len(groups) - NAMED, 'more group')}"


def time_since_mark(marks: Sequence[Row], earliest: int, latest: int) -> str:
    """Return the time from the last near mark to a start between `earliest` and `latest`, with a leading space.

    Return an empty text if no mark is near.
    """
    near = [m for m in marks if earliest - NEAR_MS <= m["marked_at"] <= latest]
    if not near:
        return ""
    last = max(near, key=lambda m: m["marked_at"])
    if last["marked_at"] > earliest:
        return f" It began near {name(last)}, which lies between the earliest and the latest possible start."
    return f" It began {between(earliest - last['marked_at'], latest - last['marked_at'])} after {name(last)}."
