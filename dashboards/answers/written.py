"""How answers are laid out as text, and their times in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from textwrap import fill
from typing import Any

from dashboards.lake.lake import Row
from dashboards.queries.store import KnownSpan
from dashboards.text import duration, instant, visible
from dashboards.zone import zone

WIDTH = 110
"""Longest line of prose and of a table. Proof is not wrapped, so that it can be searched for."""


def at(ms: int | None) -> str | None:
    """Return a time in ISO 8601 (UTC) with milliseconds."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


VERDICT_OF_GROUP = ("verdict", "cause", "rebalances", "lost", "lost_min", "lost_max", "observed")
VERDICT = (*VERDICT_OF_GROUP[:3], "groups", *VERDICT_OF_GROUP[3:])
"""Columns of sums by verdict and cause, of one group and of all."""


def verdict_values(rows: Sequence[Row], names: Sequence[str] = VERDICT) -> list[dict[str, Any]]:
    """Return sums by verdict and cause as values of JSON."""
    return [{name: row[name] for name in names} for row in rows]


def newest_records(seen: KnownSpan, now_ms: int, stale_ms: int) -> dict[str, Any]:
    """Return the time of each cluster's newest record, and whether that is old, as values of JSON."""
    return {name: {"at": at(until), "is_stale": now_ms - until > stale_ms} for name, until in seen.until.items()}


def old_record(cluster: str, age_ms: int) -> str:
    """Return that the newest record of a cluster is old, as a sentence."""
    return f"The newest record of {visible(cluster, 60)} is {duration(age_ms)} old: what happened since is not known."


def not_known(seen: KnownSpan) -> str:
    """Return a sentence that nothing is known of a range, with the times of the first and the newest record."""
    first, last = instant(seen.first_at)[:19], instant(seen.last_at)[:19]
    return f"Nothing is known of this range: records are of {first} to {last} {zone()}."


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
