"""Progress of reassignments over time: one line per partition, one dot per poll."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from dashboards.figures.clock import time_axis
from dashboards.lake.lake import Row
from dashboards.text import figure_text, instant, visible
from dashboards.urlstate import Window
from dashboards.views.plot import Figure, trace
from dashboards.views.theme import hues, layout
from dashboards.zone import zone
from schemas.written import percent

LINES_SHOWN, HEIGHT_PX = 16, 260


def progress_figure(samples: Iterable[Row], window: Window) -> tuple[Figure, int]:
    """Return a figure of at most `LINES_SHOWN` reassignments, and their total number.

    The `samples` of one reassignment must be consecutive.
    """
    of_move = [list(rows) for _, rows in groupby(samples, key=_move)]
    shown = of_move[:LINES_SHOWN]
    names = [f"{visible(rows[0]['topic'], 40)}-{rows[0]['partition']}" for rows in shown]
    colours = hues(names)
    ends: list[dict[str, Any]] = [
        {"x": rows[-1]["observed_at"], "y": 100 * rows[-1]["progress"], "text": figure_text(name, 30),
         "xanchor": "left", "xshift": 6, "showarrow": False, "font": {"size": 10}}
        for name, rows in zip(names, shown, strict=True)
    ]  # fmt: skip
    drawn = layout(
        HEIGHT_PX,
        margin={"l": 60, "r": 140, "t": 16, "b": 34},
        xaxis=time_axis(window.start, window.end),
        yaxis={"range": [-4, 104], "ticksuffix": " %", "zeroline": False, "fixedrange": True},
        annotations=ends,
    )
    figure: Figure = {"data": [], "layout": drawn}
    for name, rows in zip(names, shown, strict=True):
        figure["data"].append(
            trace(
                "scatter",
                x=[row["observed_at"] for row in rows],
                y=[100 * row["progress"] for row in rows],
                mode="lines+markers",
                line={"width": 2, "color": colours[name]},
                marker={"size": 5, "color": colours[name]},
                customdata=[[_tip(name, row)] for row in rows],
                hovertemplate="%{customdata[0]}<extra></extra>",
            )
        )
    return figure, len(of_move)


def _move(row: Row) -> tuple[Any, ...]:
    return row["cluster"], row["topic"], row["partition"], row["started_at"]


def _tip(name: str, row: Row) -> str:
    return (
        f"<b>{figure_text(name)}</b> {percent(row['progress'])}<br>{instant(row['observed_at'])} {zone()}<br>observed"
    )
