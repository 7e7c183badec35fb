"""Losses over time, stacked by what they are blamed on. Time without records is drawn as not observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.figures.clock import time_axis
from dashboards.text import amount, instant
from dashboards.urlstate import Window
from dashboards.views.buckets import Buckets
from dashboards.views.plot import Figure, Trace, trace
from dashboards.views.theme import STYLES, Style, layout
from dashboards.views.verdict_styles import PENDING, VERDICT_STYLES
from dashboards.zone import zone
from schemas.written import count

HEIGHT_PX = 280
Cell = tuple[float, int]
"""Lost resource-seconds, and rebalances."""


def causes_figure(
    found: Mapping[tuple[str, int], Cell], times: Buckets, hrefs: Sequence[str], unseen: Sequence[tuple[int, int]]
) -> Figure:
    """Return a bar for each bucket. `found` is by verdict (or `PENDING`) and bucket, `hrefs` by bucket.

    `unseen` are the spans (epoch milliseconds) about which nothing is known.
    """
    first, last = times.edges[0], times.edges[-1]
    drawn = layout(
        HEIGHT_PX,
        barmode="stack",
        margin={"l": 70, "r": 20, "t": 12, "b": 38},
        xaxis=time_axis(first, last) | {"showgrid": False},
        yaxis={"rangemode": "tozero", "zeroline": False, "fixedrange": True, "title": {"text": "resource-seconds"}},
        yaxis2={"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True},
    )
    traces = [_verdict(name, found, times, hrefs) for name in VERDICT_STYLES]
    return {"data": [*([_unseen(unseen)] if unseen else []), *(each for each in traces if each)], "layout": drawn}


def _verdict(name: str, found: Mapping[tuple[str, int], Cell], times: Buckets, hrefs: Sequence[str]) -> Trace | None:
    at = [bucket for bucket in range(len(times)) if (name, bucket) in found]
    if not at:
        return None
    style = VERDICT_STYLES[name]
    return trace(
        "bar",
        x=[times.edges[bucket] for bucket in at],
        y=[round(found[name, bucket][0], 3) for bucket in at],
        width=[times.edges[bucket + 1] - times.edges[bucket] for bucket in at],
        offset=0,
        marker={
            "color": style.colour,
            # The outline keeps bars of little loss visible.
            "line": {"width": 1, "color": style.colour},
            "pattern": _pattern(style),
        },
        customdata=[[_tip(style.word, found[name, bucket], times, bucket), hrefs[bucket]] for bucket in at],
        hovertemplate="%{customdata[0]}<extra></extra>",
    )


def _pattern(style: Style) -> dict[str, Any]:
    if style is VERDICT_STYLES[PENDING]:
        return {"shape": style.pattern, "size": 6, "solidity": 0.25, "fillmode": "replace"}
    return {"shape": style.pattern, "size": 6, "solidity": 0.3, "fillmode": "overlay", "fgcolor": "rgba(26,27,30,0.55)"}


def _tip(word: str, cell: Cell, times: Buckets, bucket: int) -> str:
    since, until = (f"{instant(times.edges[edge])[:19]}" for edge in (bucket, bucket + 1))
    return f"<b>{word}</b><br>{amount(cell[0])} lost in {count(cell[1], 'rebalance')}<br>{since} to {until} {zone()}"


def _unseen(spans: Sequence[tuple[int, int]]) -> Trace:
    return trace(
        "bar",
        x=[first for first, _ in spans],
        y=[1] * len(spans),
        width=[last - first for first, last in spans],
        offset=0,
        yaxis="y2",
        marker={
            "color": STYLES["unknown"].colour,
            "opacity": 0.45,
            "pattern": {"shape": "x", "size": 9, "solidity": 0.12, "fillmode": "replace"},
        },
        hovertemplate="<b>not observed</b><br>no record covers this time<extra></extra>",
    )


def unseen_spans(window: Window, times: Buckets, first_at: int, last_at: int) -> list[tuple[int, int]]:
    """Return the parts of the figure about which nothing is known: before the first record and after the newest one.

    The parts that are drawn before and after the window itself count as not known, too.
    """
    begin, end = max(window.start, first_at), min(window.end, last_at)
    whole = (times.edges[0], times.edges[-1])
    if begin >= end:
        return [whole]
    # The small margin around the range of all data is not marked.
    least = window.width // 40
    spans = [(whole[0], begin), (end, whole[1])]
    return [(first, last) for first, last in spans if last - first > least]
