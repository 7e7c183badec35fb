"""The control of time: quick ranges, the span in force, and what moves it. Its buttons are the keys of
assets/keyboard.js, pressed or clicked; assets/times.js and zoom.js carry them out by changing the address.
"""

from __future__ import annotations

from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.text import instant, span
from dashboards.urlstate import ALL, SPANS, State, Window
from dashboards.views.components import aria
from dashboards.zone import zone

MOVES = (
    ("a", "←", "earlier"),
    ("s", "\N{MINUS SIGN}", "zoom out"),
    ("w", "+", "zoom in"),
    ("d", "→", "later"),
    ("f", "◎", "focus on what was pointed at last"),
)  # fmt: skip


def ranges(state: State, shown: str, view: Window | None) -> Component:
    """Links to the same page with another range; `shown` is the one in force, `view` what it is now."""
    here: dict[str, object] = {"cluster": state.cluster, "group": state.group, "gid": state.gid, "q": state.q, "to": ""}
    if state.page == "group":
        here["lanes"] = state.lanes
    if not (state.group or state.gid or state.page == "group"):
        del here["group"]
    options = [*((key, label) for key, (label, _) in SPANS.items()), (ALL, "all data")]
    quick = [
        dcc.Link(
            label, href=state.href(state.page or "fleet", **here, from_=key), className="on" if key == shown else ""
        )
        for key, label in options
    ]
    nav = html.Nav(quick, className="ranges", **aria("time range"))
    return html.Div([nav] if view is None else [nav, _moves(view, None)], className="range")


def part(state: State, whole: Window) -> Component:
    """For a page with a span of its own: which part of it is drawn."""
    return html.Div(_moves(drawn(state, whole), whole), className="range")


def drawn(state: State, whole: Window) -> Window:
    """The part that the address names, else the whole."""
    return whole if state.zoom is None else Window(*state.zoom, is_live=False)


def _moves(view: Window, whole: Window | None) -> Component:
    told: dict[str, Any] = {"data-start": str(view.start), "data-end": str(view.end)}
    words = f"{_span(view)} {zone()}"
    if whole is None:
        when: Component = html.Button(words, className="when", title="Choose from and to", **keyed("r"))
    else:
        told |= {"data-whole": f"{whole.start}-{whole.end}"}
        when = html.Span(words, className="when")
    buttons = [
        html.Button(sign, title=f"{word} ({key.upper()})", **keyed(key), **aria(word)) for key, sign, word in MOVES
    ]
    return html.Div([when, *buttons], className="moves", role="group", **aria("time shown"), **told)


def _span(view: Window) -> str:
    """With milliseconds only where a span is short."""
    size = 23 if view.width < 60_000 else 19
    first, last = instant(view.start)[:size], instant(view.end)[:size]
    return span(first, last[11:] if first[:10] == last[:10] else last)


def keyed(key: str) -> Any:
    """The control that a key stands for (assets/keyboard.js)."""
    return {"data-key": key}
