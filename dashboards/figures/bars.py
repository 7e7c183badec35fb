"""Segments as horizontal bars: one trace per style, with edges drawn by evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dashboards.views.plot import Trace, trace
from dashboards.views.theme import Style
from dashboards.views.timelines.segments import Segment
from schemas.states import Evidence

FADE = (0.16, 0.34, 0.52, 0.7)


def pieces(segment: Segment, fine: float = 0) -> list[tuple[int, int, float]]:
    """Return (from, to, opacity): the certain part at full opacity, the possible start and end fading outwards.

    A span shorter than `fine` is too narrow for steps and gets one shade.
    """
    sure = [(segment.start, segment.end, 1.0)] if segment.end > segment.start else []
    return [*_fade(segment.earliest, segment.start, fine), *sure, *_mirrored(segment.end, segment.latest, fine)]


def _fade(start: int, end: int, fine: float) -> list[tuple[int, int, float]]:
    if end <= start:
        return []
    if end - start < fine:
        return [(start, end, sum(FADE) / len(FADE))]
    width = (end - start) / len(FADE)
    cuts = [round(start + i * width) for i in range(len(FADE) + 1)]
    return [(a, b, o) for a, b, o in zip(cuts, cuts[1:], FADE, strict=False) if b > a]


def _mirrored(start: int, end: int, fine: float) -> list[tuple[int, int, float]]:
    return [(start + end - b, start + end - a, o) for a, b, o in reversed(_fade(start, end, fine))]


def bars(
    rows: Iterable[tuple[float, Segment, str, str, list[str]]],
    *,
    height: float,
    axis: str,
    style: Style | None = None,
    named: str | None = None,
    scale: float = 1,
    origin: int = 0,
    fine: float = 0,
) -> Trace:
    """Return one trace. Each row holds y, segment, colour, label inside the bar, and [tooltip, link].

    `origin` and `scale` convert timestamps to x: unchanged epoch milliseconds, or seconds since a timestamp. `named` is
    the style's name, with which the legend hides and shows the trace.
    """
    x: list[float] = []
    base: list[float] = []
    y: list[float] = []
    colours: list[str] = []
    opacities: list[float] = []
    labels: list[str] = []
    details: list[list[str]] = []
    for at, segment, colour, label, tip in rows:
        parts = pieces(segment, fine)
        longest = max((b - a for a, b, _ in parts), default=0)
        for start, end, opacity in parts:
            base.append((start - origin) * scale)
            x.append((end - start) * scale)
            y.append(at)
            colours.append(colour)
            opacities.append(round(opacity, 2))
            labels.append(label if end - start == longest else "")
            details.append(tip)
    marker: dict[str, Any] = {"color": colours, "opacity": opacities, "line": {"width": 0}}
    if style is not None:
        marker["color"] = style.colour
        # The outline is at least one pixel wide, so a rebalance of milliseconds stays visible in a day.
        if style.height >= 0.5:
            marker["line"] = {"width": 1, "color": style.colour}
        if style.pattern:
            hatched = style.pattern == "x"
            marker["pattern"] = {
                "shape": style.pattern,
                "size": 7,
                "solidity": 0.12 if hatched else 0.3,
                "fillmode": "replace" if hatched else "overlay",
                **({} if hatched else {"fgcolor": "rgba(26,27,30,0.55)"}),
            }
    return trace(
        "bar",
        orientation="h",
        base=base,
        x=x,
        y=y,
        width=height,
        marker=marker,
        meta=None if named is None else {"style": named},
        customdata=details,
        hovertemplate="%{customdata[0]}<extra></extra>",
        text=labels if any(labels) else None,
        textposition="inside",
        insidetextanchor="start",
        textfont={"size": 10, "color": "#FFFFFF"},
        cliponaxis=True,
        yaxis=axis,
    )


def dotted_edges(
    rows: Iterable[tuple[float, float, Segment]], *, axis: str, scale: float = 1, origin: int = 0
) -> Trace:
    """Return dotted vertical lines at both ends of the inferred segments, from (bottom, top, segment)."""
    x: list[float | None] = []
    y: list[float | None] = []
    for bottom, top, segment in rows:
        if segment.evidence == Evidence.INFERRED:
            for at in (segment.earliest, segment.latest):
                x += [(at - origin) * scale] * 2 + [None]
                y += [bottom, top, None]
    return trace(
        "scatter",
        x=x,
        y=y,
        mode="lines",
        line={"dash": "dot", "width": 1.5, "color": "#808488"},
        hoverinfo="skip",
        yaxis=axis,
    )


def max_lanes(lanes: Sequence[Sequence[Segment]], limit: int, fine: float) -> int:
    """Return how many of the lanes fit into `limit` bars."""
    total = 0
    for shown, segments in enumerate(lanes):
        total += sum(len(pieces(s, fine)) for s in segments)
        if total > limit:
            return shown
    return len(lanes)
