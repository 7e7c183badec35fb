"""Two deploys over the time since their starts: how many resources had no owner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby

from dashboards.lake.lake import Row
from dashboards.text import duration, figure_text
from dashboards.views.plot import Figure, trace
from dashboards.views.theme import STYLES, layout

HEIGHT_PX, TICKS, LINES = 220, 5, 2

Steps = list[tuple[int, int]]
"""Milliseconds since the start of a deploy, and the number of resources without an owner from then on."""


def steps(stops: Sequence[Row], start: int, end: int) -> Steps:
    """Return the steps from `start` to `end` (epoch milliseconds), from estimates of each stop and its end."""
    changes = {start: 0, end: 0}
    for stop in stops:
        began, resumed = _began(stop), stop["resumed_at_earliest"]
        if began < end and (resumed is None or resumed > start):
            changes[max(start, began)] = changes.get(max(start, began), 0) + 1
            if resumed is not None and resumed < end:
                changes[resumed] = changes.get(resumed, 0) - 1
    ordered = sorted(changes)
    found = zip(ordered, accumulate(changes[at] for at in ordered), strict=True)
    # The first of equal numbers in a row, and the end.
    kept = [next(same) for _, same in groupby(found, key=lambda step: step[1])]
    return [(at - start, number) for at, number in kept] + [(end - start, kept[-1][1])]


def _began(stop: Row) -> int:
    if stop["resumed_at_earliest"] is not None and stop["stopped_ms"] is not None:
        return int(stop["resumed_at_earliest"] - stop["stopped_ms"])
    return int(stop["stopped_at_earliest"] + stop["stopped_at_latest"]) // 2


def deploys_figure(found: Sequence[tuple[str, Steps]]) -> Figure:
    """Return a figure with a line for each deploy, at most two, by its name. Both have the same scale."""
    longest = max((at for _, each in found for at, _ in each), default=0) or 1
    most = max((number for _, each in found for _, number in each), default=0)
    ticks = [longest * position // (TICKS - 1) for position in range(TICKS)]
    drawn = layout(
        HEIGHT_PX,
        margin={"l": 60, "r": 20, "t": 12, "b": 34},
        dragmode=False,
        hovermode=False,
        xaxis={"range": [0, longest], "tickvals": ticks, "ticktext": [duration(at) if at else "0" for at in ticks],
               "fixedrange": True, "zeroline": False},
        yaxis={"range": [0, max(1, most) * 1.15], "zeroline": False, "fixedrange": True,
               "title": {"text": "without an owner"}},
    )  # fmt: skip
    figure: Figure = {"data": [], "layout": drawn}
    for (name, each), (colour, dash) in zip(found[:LINES], _strokes(), strict=False):
        figure["data"].append(
            trace(
                "scatter",
                name=figure_text(name, 40),
                x=[at for at, _ in each],
                y=[number for _, number in each],
                mode="lines",
                line={"shape": "hv", "width": 2, "color": colour, "dash": dash},
                hoverinfo="skip",
            )
        )
    return figure


def _strokes() -> tuple[tuple[str, str], ...]:
    return (STYLES["working"].colour, "solid"), ("#8A8F94", "dot")
