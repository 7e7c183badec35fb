"""Storms over time: the span of each storm, or for one storm every rebalance of the groups it hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.figures.bars import bars, dotted_edges
from dashboards.figures.clock import time_axis
from dashboards.figures.group import generation_tip
from dashboards.lake.lake import Row
from dashboards.queries.generation_times import ended
from dashboards.text import duration, figure_text, instant
from dashboards.urlstate import Window
from dashboards.views.plot import Figure, Trace, trace
from dashboards.views.theme import STYLES, layout
from dashboards.views.timelines.segments import PARTIAL_MODES, Segment
from dashboards.zone import zone
from schemas.states import Evidence
from schemas.written import count

ROW_PX, TOP_PX, BELOW_PX, WORDS_PX = 24, 26, 36, 42
GROUPS_SHOWN, STORMS_SHOWN = 30, 40
FINE = 300
ENDED = "#7E95AA"
INK = "#808488"
Key = tuple[str, int, int]
"""Group, incarnation, generation."""


def storms_figure(storms: Sequence[Row], titles: Sequence[str], hrefs: Sequence[str], window: Window) -> Figure:
    """Draw at most `STORMS_SHOWN` storms from start to end; an open storm ends at its `until`, with an arrow."""
    shown = list(zip(storms, titles, hrefs, strict=True))[:STORMS_SHOWN]
    figure: Figure = {"data": [], "layout": _layout([title for _, title, _ in shown], window, BELOW_PX)}
    for is_open, colour in ((False, ENDED), (True, STYLES["stopped"].colour)):
        rows = [
            (float(y), _whole(storm), colour, "open" if is_open else "", [_tip(storm, title), href])
            for y, (storm, title, href) in enumerate(shown)
            if storm["is_open"] == is_open
        ]
        if rows:
            figure["data"].append(bars(rows, height=0.5, axis="y", fine=window.width / FINE))
    detected = [(y, s["detected_at"], "diamond-open", INK, _detected(s), h) for y, (s, _, h) in enumerate(shown)]
    lasting = [
        (y, s["until"], "triangle-right", STYLES["stopped"].colour, "still open as last seen", h)
        for y, (s, _, h) in enumerate(shown)
        if s["is_open"]
    ]
    figure["data"] += [_points(detected), _points(lasting)]
    return figure


def storm_figure(
    storm: Row, groups: Sequence[str], generations: Sequence[Row], hrefs: Mapping[Key, str], window: Window, until: int
) -> Figure:
    """Draw the rebalances of at most `GROUPS_SHOWN` groups; the storm's span is shaded, its timestamps are named."""
    end = storm["ended_at"] if storm["ended_at"] is not None else until
    moments = [("began", storm["started_at"]), ("detected", storm["detected_at"])]
    moments.append(("ended", end) if storm["ended_at"] is not None else ("open, last seen", end))
    return rebalances_figure(groups, generations, hrefs, window, moments)


def rebalances_figure(
    groups: Sequence[str],
    generations: Sequence[Row],
    hrefs: Mapping[Key, str],
    window: Window,
    moments: Sequence[tuple[str, int]],
) -> Figure:
    """Draw the rebalances of at most `GROUPS_SHOWN` groups, one row each.

    The time from the first to the last of `moments` (epoch ms) is shaded, and each of them is named below the figure.
    """
    shown = groups[:GROUPS_SHOWN]
    row_of = {group: y for y, group in enumerate(shown)}
    drawn = [(row_of[g["group_id"]], g, _rebalance(g)) for g in generations if g["group_id"] in row_of]
    details = {"shapes": _moments(moments, moments[0][1], moments[-1][1]), "annotations": _words(moments, window)}
    figure: Figure = {"data": [], "layout": _layout(shown, window, BELOW_PX + WORDS_PX) | details}
    for name in ("stopped", "partial"):
        style = STYLES[name]
        rows = [
            (float(y), segment, style.colour, "", [_rebalance_tip(g), hrefs.get(key(g), "")])
            for y, g, segment in drawn
            if segment.kind == name
        ]
        if rows:
            figure["data"].append(
                bars(rows, height=0.6 * style.height, axis="y", style=style, named=name, fine=window.width / FINE)
            )
    figure["data"].append(dotted_edges(((y - 0.35, y + 0.35, segment) for y, _, segment in drawn), axis="y"))
    return figure


def key(g: Row) -> Key:
    return g["group_id"], g["incarnation"], g["generation_id"]


def _whole(storm: Row) -> Segment:
    start = storm["started_at"]
    end = max(start, storm["ended_at"] if storm["ended_at"] is not None else storm["until"])
    return Segment(earliest=start, start=start, end=end, latest=end, kind="storm", evidence=Evidence.OBSERVED)


def _rebalance(g: Row) -> Segment:
    end = ended(g)
    latest = g["prepared_at"] if g["prepared_at"] is not None else min(g["prepared_at_latest"], end)
    earliest = latest if g["prepared_at"] is not None else min(g["prepared_at_earliest"], latest)
    kind = "partial" if g["rebalance_mode"] in PARTIAL_MODES else "stopped"
    return Segment(earliest=earliest, start=latest, end=end, latest=end, kind=kind, evidence=g["evidence"])


def _tip(storm: Row, title: str) -> str:
    lasted = duration((storm["ended_at"] or storm["until"]) - storm["started_at"])
    lines = [f"<b>{figure_text(title)}</b>", f"from {instant(storm['started_at'])} {zone()}"]
    lines.append(f"open for {lasted}" if storm["is_open"] else f"lasted {lasted}")
    # These values are hidden from a reader who may not see all of the storm's groups.
    details = [] if storm["evidence"] is None else [count(storm["rebalances"], "rebalance"), storm["evidence"]]
    return "<br>".join([*lines, *details])


def _rebalance_tip(g: Row) -> str:
    return f"<b>{figure_text(g['group_id'])}</b><br>{generation_tip(g)}"


def _detected(storm: Row) -> str:
    return f"detected {instant(storm['detected_at'])} {zone()}"


def _points(points: Sequence[tuple[int, int, str, str, str, str]]) -> Trace:
    """Draw points given as (row, timestamp, symbol, colour, tooltip, address)."""
    return trace(
        "scatter",
        x=[at for _, at, *_ in points],
        y=[y for y, *_ in points],
        mode="markers",
        marker={
            "symbol": [symbol for _, _, symbol, *_ in points],
            "color": [colour for *_, colour, _, _ in points],
            "size": 10,
            "line": {"width": 1.5, "color": [colour for *_, colour, _, _ in points]},
        },
        customdata=[[tip, href] for *_, tip, href in points],
        hovertemplate="%{customdata[0]}<extra></extra>",
        cliponaxis=False,
    )


def _moments(moments: Sequence[tuple[str, int]], start: int, end: int) -> list[dict[str, Any]]:
    row_of = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1}
    span = {"type": "rect", **row_of, "x0": start, "x1": end, "fillcolor": INK, "opacity": 0.14, "line": {"width": 0}}
    lines = [
        {"type": "line", **row_of, "x0": at, "x1": at, "line": {"width": 1, "dash": "dot", "color": INK}}
        for _, at in moments
    ]
    return [span | {"layer": "below"}, *lines]


def _words(moments: Sequence[tuple[str, int]], window: Window) -> list[dict[str, Any]]:
    """Return labels below the plot, each on the highest line where it overlaps no earlier label."""
    words: list[dict[str, Any]] = []
    ends = [float("-inf")] * len(moments)
    for word, at in moments:
        line = next(i for i, end in enumerate(ends) if at >= end)
        ends[line] = at + window.width * 0.09
        words.append(
            {"text": word, "x": at, "xref": "x", "y": 0, "yref": "paper", "yanchor": "top", "yshift": -30 - 13 * line,
             "xanchor": "center", "showarrow": False, "font": {"size": 11}}
        )  # fmt: skip
    return words


def _layout(labels: Sequence[str], window: Window, below: int) -> dict[str, Any]:
    return layout(
        ROW_PX * max(2, len(labels)) + TOP_PX + below,
        margin={"l": 120, "r": 18, "t": TOP_PX, "b": below},
        xaxis=time_axis(window.start, window.end),
        yaxis={
            "tickvals": list(range(len(labels))),
            "ticktext": [figure_text(label, 17) for label in labels],
            "range": [max(2, len(labels)) - 0.5, -0.5],
            "showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "",
        },
    )  # fmt: skip
