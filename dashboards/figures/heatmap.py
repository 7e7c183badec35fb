"""Groups over time: what was lost, or the number of rebalances, in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboards.figures.clock import time_axis
from dashboards.lake.lake import Row
from dashboards.text import amount, figure_text, instant
from dashboards.urlstate import Window
from dashboards.views.plot import Figure, trace
from dashboards.views.theme import LEVELS, LOST_LEVELS, layout, style_of
from dashboards.zone import zone
from schemas.written import count

BINS = 96
NOTHING = {"rebalances": 0, "lost": 0.0}

SHADES = (
    "rgba(81,115,144,0.16)",
    "rgba(189,55,67,0.38)",
    "rgba(189,55,67,0.58)",
    "rgba(189,55,67,0.8)",
    "rgba(189,55,67,1)",
)
ROW_PX = 20


def level(rebalances: int) -> int:
    """Return the level of a number of rebalances."""
    return max(i for i, least in enumerate(LEVELS) if rebalances >= least)


def lost_level(rebalances: int, lost: float | None) -> int:
    """Return the level of a loss in resource-seconds. A rebalance whose loss is not known has the lowest but quiet."""
    if not rebalances:
        return 0
    return 1 if lost is None else max(i for i, least in enumerate(LOST_LEVELS) if lost >= least)


def heatmap(
    groups: Sequence[Row], cells: Sequence[Row], window: Window, until: Mapping[str, int], *, by_loss: bool
) -> Figure:
    """Return the heatmap. `groups` are worst first (keys, `state`, `first_seen_at`); `cells` are from `Store.cells`.

    A cell is blank instead of quiet before its group was first seen, after the newest record of its cluster (`until`),
    and if the group's state is unknown.
    """
    width = max(1, -(-window.width // BINS))
    found = {(c["cluster"], c["group_id"], c["bin"]): c for c in cells}
    starts = [window.start + position * width for position in range(BINS)]
    times = [f"{instant(start)[:19]} {zone()}" for start in starts]
    z: list[list[int | None]] = []
    details: list[list[str]] = []
    for group in groups:
        name = figure_text(group["group_id"], 40)
        is_known = style_of(group["state"]) != "unknown"
        shades: list[int | None] = []
        tips: list[str] = []
        for position, start in enumerate(starts):
            cell = found.get((group["cluster"], group["group_id"], position), NOTHING)
            number, lost = cell["rebalances"], cell["lost"]
            observed = number or (is_known and group["first_seen_at"] - width < start < until.get(group["cluster"], 0))
            shade = lost_level(number, lost) if by_loss else level(number)
            shades.append(shade if observed else None)
            text = f"<b>{count(number, 'rebalance')}</b><br>{_lost(lost)}" if number else "<b>no rebalance</b>"
            tips.append(f"{name}<br>{times[position]}<br>{text}" if observed else "")
        z.append(shades)
        details.append(tips)
    steps = [(edge, shade) for i, shade in enumerate(SHADES) for edge in (i / len(SHADES), (i + 1) / len(SHADES))]
    labels = [figure_text(group["group_id"], 17) for group in groups]
    cells_drawn = trace(
        "heatmap",
        z=z,
        x0=window.start + width // 2,
        dx=width,
        y0=0,
        dy=1,
        customdata=details,
        hovertemplate="%{customdata}<extra></extra>",
        colorscale=steps,
        zmin=-0.5,
        zmax=len(SHADES) - 0.5,
        showscale=False,
        xgap=1,
        ygap=3,
        hoverongaps=False,
    )
    axes = layout(
        ROW_PX * len(groups) + 44,
        xaxis=time_axis(window.start, window.end) | {"showgrid": False},
        yaxis={
            "tickvals": list(range(len(groups))),
            "ticktext": labels,
            "range": [len(groups) - 0.5, -0.5],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticks": "",
        },
    )
    return {"data": [cells_drawn], "layout": axes}


def _lost(lost: float | None) -> str:
    return "loss not analyzed yet" if lost is None else f"{amount(lost)} resource-seconds lost"
