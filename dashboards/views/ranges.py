"""The time controls: quick ranges, the current span, and buttons that move it.

The buttons have the keys of assets/keyboard.js. assets/times.js and zoom.js implement them by changing the address.
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
    ("f", "◎", "focus on the last item pointed at"),
)  # fmt: skip


def ranges(state: State, shown: str, view: Window | None) -> Component:
    """Return links to the same page with other ranges; `shown` names the current one, `view` is its span."""
    here: dict[str, object] = {"cluster": state.cluster, "group": state.group, "gid": state.gid, "q": state.q, "to": ""}
    if state.page == "group":
        here |= {"lanes": state.lanes, "at": state.at, "against": state.against}
    if state.page == "fleet":
        here["heat"] = state.heat
    if state.page == "causes":
        here |= {"by": state.by, "team": state.team, "verdict": state.verdict, "cause": state.cause}
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
    """Return the controls for the visible part, on a page with a fixed span."""
    return html.Div(_moves(drawn(state, whole), whole), className="range")


def drawn(state: State, whole: Window) -> Window:
    """Return the part in the address, or the whole span."""
    return whole if state.zoom is None else Window(*state.zoom, is_live=False)


def _moves(view: Window, whole: Window | None) -> Component:
    attributes: dict[str, Any] = {"data-start": str(view.start), "data-end": str(view.end)}
    words = f"{_span(view)} {zone()}"
    if whole is None:
        when: Component = html.Button(words, className="when", title="Choose from and to", **keyed("r"))
    else:
        attributes |= {"data-whole": f"{whole.start}-{whole.end}"}
        when = html.Span(words, className="when")
    buttons = [
        html.Button(sign, title=f"{word} ({key.upper()})", **keyed(key), **aria(word)) for key, sign, word in MOVES
    ]
    return html.Div([when, *buttons], className="moves", role="group", **aria("time shown"), **attributes)


def _span(view: Window) -> str:
    """Return the span as text, with milliseconds only if it is shorter than a minute."""
    size = 23 if view.width < 60_000 else 19
    first, last = instant(view.start)[:size], instant(view.end)[:size]
    return span(first, last[11:] if first[:10] == last[:10] else last)


def keyed(key: str) -> Any:
    """Return the attribute that binds a control to a key (assets/keyboard.js)."""
    return {"data-key": key}
