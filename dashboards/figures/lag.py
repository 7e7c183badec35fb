"""The lag of a group: a band from its lower to its upper bound, with a dot for each poll."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.figures.clock import time_axis
from dashboards.queries.lag import Behind
from dashboards.text import instant
from dashboards.urlstate import Window
from dashboards.views.plot import Figure, trace
from dashboards.views.theme import STYLES, layout
from dashboards.zone import zone

HEIGHT_PX = 200
APART_MS = 60_000
"""Dots further apart are not connected. Around a change, the poll requests end offsets four times a minute."""


def lag_figure(found: Sequence[Behind], window: Window) -> Figure:
    """Return two lines, filled between if the bounds differ; interrupted if there was no poll."""
    drawn = layout(
        HEIGHT_PX,
        margin={"l": 70, "r": 20, "t": 12, "b": 34},
        xaxis=time_axis(window.start, window.end),
        yaxis={"rangemode": "tozero", "zeroline": False, "fixedrange": True, "title": {"text": "records"}},
    )
    figure: Figure = {"data": [], "layout": drawn}
    colour = STYLES["working"].colour
    for name in ("least", "most"):
        x: list[int | None] = []
        y: list[int | None] = []
        tips: list[list[str]] = []
        for each in found:
            if x and x[-1] is not None and each.at - x[-1] > APART_MS:
                x, y, tips = [*x, None], [*y, None], [*tips, [""]]
            x, y = [*x, each.at], [*y, getattr(each, name)]
            tips.append([f"<b>{each} behind</b><br>{instant(each.at)} {zone()}<br>{_grade(each)}"])
        figure["data"].append(
            trace(
                "scatter",
                x=x,
                y=y,
                mode="lines+markers",
                fill="tonexty" if name == "most" else None,
                line={"width": 1.5, "color": colour},
                marker={"size": 4, "color": colour},
                customdata=tips,
                hovertemplate="%{customdata[0]}<extra></extra>",
            )
        )
    return figure


def _grade(each: Behind) -> str:
    return "observed" if each.least == each.most else "bounded: between two commits"
