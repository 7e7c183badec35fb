"""The cost of each absence before and after a change of settings, with both means and the predicted one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.figures.clock import time_axis
from dashboards.lake.lake import Row
from dashboards.text import amount, instant
from dashboards.views.plot import Figure, Trace, trace
from dashboards.views.theme import STYLES, layout
from dashboards.zone import zone

HEIGHT_PX = 220
SIDE_MS = 60_000
"""Time shown before the first absence and after the last one, at least."""


def absence_costs_figure(change: Row) -> Figure:
    """Return a dot for each absence, a line for the mean of each side, and a diamond with a whisker for the prediction.

    `change` is a row of `setting_changes`, with timestamps in milliseconds and at least one absence.
    """
    costs = sorted(change["costs"], key=lambda each: each["stopped_ms"])
    start, end = costs[0]["stopped_ms"], max(costs[-1]["stopped_ms"], change["changed_at"])
    start = min(start, change["rollout_at"])
    pad = max(SIDE_MS, (end - start) // 20)
    before = [c for c in costs if c["stopped_ms"] < change["changed_at"]]
    after = [c for c in costs if c["stopped_ms"] >= change["changed_at"]]
    drawn = layout(
        HEIGHT_PX,
        margin={"l": 70, "r": 20, "t": 22, "b": 34},
        xaxis=time_axis(start - pad, end + pad),
        yaxis={"rangemode": "tozero", "fixedrange": True, "zeroline": False, "title": {"text": "resource-seconds"}},
        shapes=[_rollout(change)],
        annotations=[
            {
                "x": change["changed_at"],
                "y": 1,
                "yref": "paper",
                "yanchor": "bottom",
                "text": "⚙ changed",
                "showarrow": False,
            }
        ],
    )
    data = [
        *_side("before", before, STYLES["empty"].colour, (start - pad, change["rollout_at"])),
        *_side("since", after, STYLES["working"].colour, (change["changed_at"], end + pad)),
        *_predicted(change, before, end),
    ]
    return {"data": data, "layout": drawn}


def _rollout(change: Row) -> dict[str, Any]:
    return {
        "type": "rect",
        "x0": change["rollout_at"],
        "x1": change["changed_at"],
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"width": 1, "color": STYLES["empty"].colour},
        "fillcolor": "rgba(128,132,136,0.18)",
    }


def _side(name: str, costs: Sequence[Row], colour: str, span: tuple[int, int]) -> list[Trace]:
    if not costs:
        return []
    mean = sum(c["lost_resource_seconds"] for c in costs) / len(costs)
    dots = trace(
        "scatter",
        mode="markers",
        x=[c["stopped_ms"] for c in costs],
        y=[c["lost_resource_seconds"] for c in costs],
        marker={"size": 7, "color": colour},
        customdata=[
            [f"<b>{amount(c['lost_resource_seconds'])} resource-seconds</b><br>{instant(c['stopped_ms'])} {zone()}"]
            for c in costs
        ],
        hovertemplate="%{customdata[0]}<extra></extra>",
    )
    line = trace(
        "scatter",
        mode="lines",
        x=list(span),
        y=[mean, mean],
        line={"width": 2, "color": colour},
        hovertemplate=f"mean {name}: {amount(mean)}<extra></extra>",
    )
    return [dots, line]


def _predicted(change: Row, before: Sequence[Row], end: int) -> list[Trace]:
    """Return the predicted cost of an absence: the mean before, less the predicted saving of each absence since."""
    if change["saving_predicted"] is None or not before or not change["absences_after"]:
        return []
    mean = change["lost_before"] / change["absences_before"]
    value, most, least = (
        mean - change[f"saving_predicted{end_of}"] / change["absences_after"] for end_of in ("", "_low", "_high")
    )
    text = f"predicted: {amount(value)} ({amount(max(0.0, least))} to {amount(most)})"
    return [
        trace(
            "scatter",
            mode="markers",
            x=[end],
            y=[max(0.0, value)],
            marker={"size": 10, "symbol": "diamond-open", "color": STYLES["assigning"].colour},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [max(0.0, most - value)],
                "arrayminus": [max(0.0, min(value, value - least))],
                "color": STYLES["assigning"].colour,
            },
            hovertemplate=f"{text}<extra></extra>",
        )
    ]
