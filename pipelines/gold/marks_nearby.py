"""Marks as evidence: what was announced shortly before a rebalance, or a storm, began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from schemas.rows import MarkRow
from schemas.states import MarkKind
from schemas.written import duration

MARK_MS = 30 * 60_000
"""A mark so long before is a suspect."""

LONGEST = 80
"""What people announce may be of any length."""


def before(at: int, marks: Iterable[MarkRow]) -> list[MarkRow]:
    """Of marks (`marked_at` in milliseconds, `kind`, `text`) those shortly before `at`, the nearest first."""
    near = [m for m in marks if 0 <= at - m["marked_at"] <= MARK_MS]
    return sorted(near, key=lambda m: (at - m["marked_at"], m["kind"], m["text"]))


def is_deployed(at: int, marks: Iterable[MarkRow]) -> bool:
    """A deploy was announced shortly before."""
    return any(m["kind"] == MarkKind.DEPLOY for m in before(at, marks))


def marks_sentence(instants: Sequence[int], marks: Iterable[MarkRow]) -> str:
    """How many of what began at `instants` marks announced, and which the first; empty where none did."""
    found = [(at, near[0]) for at in instants if (near := before(at, marks))]
    if not found:
        return ""
    at, mark = found[0]
    first = f"{duration(at - mark['marked_at'])} after the mark “{mark['text'][:LONGEST]}” ({mark['kind']})"
    if len(instants) == 1:
        return f"It began {first}."
    which = "all" if len(found) == len(instants) else f"{len(found)} of {len(instants)}"
    return f"Marks came up to {duration(MARK_MS)} before {which} of them; the first began {first}."
