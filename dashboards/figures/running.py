"""The share of running resources over time, as bars: those that run from below, those that are stopped from above."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dashboards.text import duration, instant, span
from dashboards.views.plot import Trace, trace
from dashboards.views.theme import STYLES
from dashboards.views.timelines.running import Running
from dashboards.zone import zone

LEAST = 0.16
"""Height of the smallest stopped part, so that one stopped resource of thousands is seen. The height of all is 1."""
FADED = 0.4

Bar = tuple[Running, float, float]
"""A step with the lower and upper edge of its bar."""


def running_bars(found: Sequence[Running], unit: str, axis: str) -> list[Trace]:
    """Return the traces: certainly running, perhaps stopped (faded), certainly stopped. `unit` names one resource."""
    edges = [(step, _edge(step.total - step.least, step), _edge(step.total - step.most, step)) for step in found]
    return [
        _bars(((step, 0.0, perhaps) for step, perhaps, _ in edges), "working", 1.0, unit, axis),
        _bars(((step, perhaps, sure) for step, perhaps, sure in edges), "stopped", FADED, unit, axis),
        _bars(((step, sure, 1.0) for step, _, sure in edges), "stopped", 1.0, unit, axis),
    ]


def _edge(stopped: int, step: Running) -> float:
    """Return the height at which `stopped` resources begin, from above."""
    return 1.0 if not stopped else 1.0 - max(LEAST, stopped / step.total)


def _bars(rows: Iterable[Bar], style: str, opacity: float, unit: str, axis: str) -> Trace:
    shown = [(step, low, high) for step, low, high in rows if high > low]
    colour = STYLES[style].colour
    # The outline is at least one pixel wide, so a stop of milliseconds stays visible in a day.
    line = {"width": 1, "color": colour} if style == "stopped" else {"width": 0}
    return trace(
        "bar",
        orientation="h",
        base=[step.start for step, _, _ in shown],
        x=[step.end - step.start for step, _, _ in shown],
        y=[(low + high) / 2 for _, low, high in shown],
        width=[high - low for _, low, high in shown],
        marker={"color": colour, "opacity": opacity, "line": line},
        meta={"style": style},
        customdata=[[_tip(step, unit), ""] for step, _, _ in shown],
        hovertemplate="%{customdata[0]}<extra></extra>",
        yaxis=axis,
    )


def running_words(step: Running) -> str:
    """Return the numbers of a step, with their bounds: "11 of 12"."""
    least = str(step.least) if step.least == step.most else span(str(step.least), str(step.most))
    return f"{least} of {step.total}"


def _tip(step: Running, unit: str) -> str:
    number = f"<b>{running_words(step)}</b> {unit}s running (the lowest number in this time)"
    time = f"from {instant(step.start)} {zone()}", f"for {duration(step.end - step.start)}"
    return "<br>".join([number, *time, step.evidence])
