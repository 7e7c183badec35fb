"""How old the newest record is, in words, and from which age on a state counts as not observed."""

from __future__ import annotations

from typing import Any

from dash import html
from dash.development.base_component import Component

from dashboards.queries.store import KnownSpan
from dashboards.text import duration, future, instant, is_ahead, visible
from dashboards.zone import zone

STALE_MS = 60_000
"""Age at which the newest record is shown as stale: either nothing was written, or nothing was read."""


def is_stale(until: int, now: int) -> bool:
    """Return whether nothing is known of the time since `until`, the newest record; both in milliseconds."""
    return now - until > STALE_MS


def freshness(span: KnownSpan | None, now: int, cluster: str = "") -> list[Component]:
    """Return the age of the newest record, of this cluster or else of the one whose record is furthest from now.

    A high age, and a record from the future, are shown as an alert.
    """
    asked = asked_at(now)
    if span is None:
        return [html.Span("no data yet", **asked)]
    known = span.until if cluster not in span.until else {cluster: span.until[cluster]}
    name, last = max(known.items(), key=lambda item: (abs(now - item[1]), item[0]))
    age = now - last
    if not is_stale(last, now) and not is_ahead(last, now):
        return [html.Span(className="pulse"), html.Span(f"live, newest record {duration(max(0, age))} old", **asked)]
    of = f" of {visible(name, 40)}" if len(span.until) > 1 else ""
    if is_ahead(last, now):
        return [html.Span(f"Newest record{of} is {future(-age)}", className="stale", **asked)]
    text = f"Newest record{of} is {duration(age)} old ({instant(last)[:19]} {zone()}): nothing later was observed"
    return [html.Span(text, className="stale", **asked)]


def asked_at(now: int) -> Any:
    """Return an attribute that changes with every response; assets/live.js warns when no response arrives."""
    return {"data-asked": str(now)}
