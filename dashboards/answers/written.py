"""How answers are laid out as text, and their times in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from textwrap import fill

WIDTH = 110
"""Longest line of prose and of a table. Proof is not wrapped, so that it can be searched for."""


def at(ms: int | None) -> str | None:
    """Return a time in ISO 8601 (UTC) with milliseconds."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def wrapped(text: str, first: str = "", indent: str = "") -> str:
    """Return prose in lines of at most `WIDTH`, the first after `first`, others after `indent`. Names stay whole."""
    return fill(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def columns(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield one line per row, with aligned cells. If they need more than `width`, the first column is cut."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    widths[0] = max(12, min(widths[0], width - sum(widths[1:]) - 2 * (len(widths) - 1)))
    for row in rows:
        first = row[0] if len(row[0]) <= widths[0] else f"{row[0][: widths[0] - 9]}…{row[0][-8:]}"
        cells = [first, *row[1:]]
        yield "  ".join(f"{cell:<{size}}" for cell, size in zip(cells, widths, strict=True)).rstrip()
