"""Marks as evidence: the announcements shortly before a rebalance or a storm began."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

from schemas.rows import MarkRow
from schemas.states import MarkKind
from schemas.thresholds import MARK_MS
from schemas.written import duration

LONGEST = 80
"""Characters of a mark's text in a sentence. Announcements may be of any length."""


def groups_of(mark: MarkRow) -> Sequence[str]:
    """Return the groups that a mark is about; an empty sequence if it is about the whole cluster.

    Rows of Regroup 0.1 have no `group_ids`; a mark for several groups counts as one for the whole cluster there.
    """
    if mark["group_ids"] is not None:
        return mark["group_ids"]
    return () if mark["group_id"] is None else (mark["group_id"],)


def announced(marks: Iterable[MarkRow]) -> list[MarkRow]:
    """Return the marks of people and CI, without the changes of pods, whose groups are not known."""
    return [mark for mark in marks if mark["kind"] != MarkKind.KUBERNETES]


def is_about(mark: MarkRow, group_ids: Collection[str]) -> bool:
    """Return whether a mark is about one of these groups or about their whole cluster."""
    groups = groups_of(mark)
    return not groups or any(group in group_ids for group in groups)


def in_order(marks: Iterable[MarkRow]) -> list[MarkRow]:
    """Return the marks in order of time, as the functions below expect them."""
    return sorted(marks, key=_marked_at)


def before(at: int, marks: Sequence[MarkRow]) -> list[MarkRow]:
    """Return the marks (`marked_at` in milliseconds) shortly before `at`, the nearest first. `marks` are `in_order`."""
    first, last = bisect_left(marks, at - MARK_MS, key=_marked_at), bisect_right(marks, at, key=_marked_at)
    return sorted(marks[first:last], key=lambda m: (at - m["marked_at"], m["kind"], m["text"]))


def _marked_at(mark: MarkRow) -> int:
    return mark["marked_at"]


def is_deployed(at: int, marks: Sequence[MarkRow]) -> bool:
    """Return whether a deploy was announced shortly before `at`."""
    return any(m["kind"] == MarkKind.DEPLOY for m in before(at, marks))


def marks_sentence(timestamps: Sequence[int], marks: Sequence[MarkRow]) -> str:
    """Return a sentence on how many rebalances began shortly after a mark, and the first of them.

    `timestamps` are the starts of the rebalances in milliseconds. The sentence is empty if no mark is near.
    """
    found = [(at, near[0]) for at in timestamps if (near := before(at, marks))]
    if not found:
        return ""
    at, mark = found[0]
    first = f"{duration(at - mark['marked_at'])} after the mark “{mark['text'][:LONGEST]}” ({mark['kind']})"
    if len(timestamps) == 1:
        return f"It began {first}."
    which = f"all {len(found)}" if len(found) == len(timestamps) else f"{len(found)} of {len(timestamps)}"
    return f"A mark came up to {duration(MARK_MS)} before {which} rebalances; the first began {first}."
