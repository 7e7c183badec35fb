"""Slices whose beginning and end lie within bounds. Times are epoch milliseconds, and UTC in texts."""

from __future__ import annotations

from dashboards.answers.traces.trace_events import Arguments, Slice
from dashboards.answers.written import at
from dashboards.urlstate import Window

NAME = 160
"""Longest name of a slice or a track, in characters."""


def bounded_slice(name: str, first: tuple[int, int], last: tuple[int, int], arguments: Arguments) -> Slice:
    """Return a slice that begins within `first` and ends within `last`, with its certain part if that is shorter."""
    (earliest, start), (end, latest) = first, last
    latest = max(earliest, latest)
    inner = None
    if earliest < start or end < latest:
        arguments = {"began": between(earliest, start), "ended": between(end, latest)} | dict(arguments)
        if start < end:
            inner = Slice(name=f"{name}, certainly", start=start, end=end)
    return Slice(name=name, start=earliest, end=latest, arguments=arguments, inner=inner)


def between(first: int, last: int) -> str:
    return f"{at(first)}" if first == last else f"between {at(first)} and {at(last)}"


def clipped_slice(each: Slice, view: Window) -> Slice | None:
    """Return the part of the slice inside the range, or None if it lies outside."""
    start, end = max(each.start, view.start), min(each.end, view.end)
    if start > end:
        return None
    inner = None if each.inner is None else clipped_slice(each.inner, view)
    return Slice(name=each.name, start=start, end=end, arguments=each.arguments, inner=inner)
