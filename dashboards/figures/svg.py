"""A figure of bars and points as a static SVG, for documents that load nothing and run no script.

Reads the figures that the pages give to Plotly, so that a document shows what its page shows. It draws what the figures
of one rebalance and of storms consist of: horizontal bars, lines, markers, shapes and notes. All text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape, unescape
from itertools import pairwise
from math import floor, log10
from typing import Any

from dashboards.views.plot import Figure, Trace
from dashboards.views.theme import STYLES

WIDTH = 1_060
LEGEND_PX = 26
TICKS = 8
CHARACTER_PX = 6.2
"""Width of a character of the legend, about."""

MARKERS = {
    "triangle-up": "M0 -5 L5 4 L-5 4 Z",
    "triangle-down": "M0 5 L5 -4 L-5 -4 Z",
    "triangle-right": "M5 0 L-4 5 L-4 -5 Z",
    "diamond": "M0 -6 L5 0 L0 6 L-5 0 Z",
    "square": "M-4 -4 H4 V4 H-4 Z",
    "x": "M-4 -4 L4 4 M-4 4 L4 -4",
    "circle": "M-4 0 A4 4 0 1 0 4 0 A4 4 0 1 0 -4 0 Z",
}
"""Paths around a point, by the names that Plotly gives these shapes. Other shapes are drawn as circles."""


FONT = 'font-family="system-ui,sans-serif" font-size="11" fill="currentColor"'
HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0 V6" stroke="#1A1B1E" stroke-opacity="0.55" stroke-width="2"/></pattern></defs>'
)


class _Plane:
    """Where values lie in the picture. The y axis of our figures has row 0 at the top."""

    def __init__(self, layout: dict[str, Any]) -> None:
        margin = layout["margin"]
        self.left, self.right = float(margin["l"]), float(WIDTH - margin["r"])
        self.top, self.bottom = float(margin["t"]), float(layout["height"] - margin["b"])
        self.first, self.last = map(float, layout["xaxis"]["range"])
        self._under, self._over = map(float, layout["yaxis"]["range"])

    def x(self, value: float) -> float:
        width = (self.last - self.first) or 1
        return self.left + (value - self.first) / width * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.top + (value - self._over) / (self._under - self._over) * (self.bottom - self.top)

    def inside(self, x: float) -> float:
        return min(max(x, self.left), self.right)


def svg(figure: Figure, title: str, legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return the figure as an `svg` element with a title for screen readers.

    `legend` has pairs of a style's name and what it means here. Text and axes have the colour of the surrounding text.
    """
    layout = figure["layout"]
    plane, height = _Plane(layout), layout["height"] + (LEGEND_PX if legend else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" {FONT}>',
        f"<title>{escape(title)}</title>",
        HATCH,
        *_x_axis(layout["xaxis"], plane),
        *_rows(layout["yaxis"], plane),
        *(part for shape in layout.get("shapes", ()) for part in _shape(shape, plane)),
        *(part for each in figure["data"] for part in _trace(each, plane)),
        *(_note(note, plane) for note in layout.get("annotations", ())),
        *_legend(legend, layout["height"] + 14),
        "</svg>",
    ]
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    """Return a text element. `text` is escaped for Plotly (`dashboards.text.figure_text`)."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(unescape(text))}</text>'


def _line(x0: float, y0: float, x1: float, y1: float, more: str) -> str:
    return f'<path d="M{x0:.1f} {y0:.1f} L{x1:.1f} {y1:.1f}" fill="none" {more}/>'


def _x_axis(axis: dict[str, Any], plane: _Plane) -> Iterator[str]:
    for value, text in _ticks(axis):
        x = plane.x(value)
        if plane.left <= x <= plane.right:
            yield _line(x, plane.top, x, plane.bottom, 'stroke="currentColor" stroke-opacity="0.15"')
            for number, line in enumerate(text.split("<br>")):
                yield _text(x, plane.bottom + 15 + 13 * number, line, "middle", ' fill-opacity="0.75"')
    yield _line(plane.left, plane.bottom, plane.right, plane.bottom, 'stroke="currentColor" stroke-opacity="0.4"')


def _ticks(axis: dict[str, Any]) -> list[tuple[float, str]]:
    if "tickvals" in axis:
        return list(zip(axis["tickvals"], axis["ticktext"], strict=True))
    first, last = axis["range"]
    rough = max(last - first, 1e-9) / TICKS
    size = 10.0 ** floor(log10(rough))
    step = next(n * size for n in (1, 2, 5, 10) if n * size >= rough)
    begin = floor(first / step)
    values = [n * step for n in range(begin, begin + TICKS + 3) if first <= n * step <= last]
    decimals = max(0, -floor(log10(step)))
    return [(value, f"{value:.{decimals}f}{axis.get('ticksuffix', '')}") for value in values]


def _rows(axis: dict[str, Any], plane: _Plane) -> Iterator[str]:
    for value, text in zip(axis["tickvals"], axis["ticktext"], strict=True):
        yield _text(plane.left - 8, plane.y(value) + 4, text, "end")


def _trace(trace: Trace, plane: _Plane) -> Iterator[str]:
    if trace["type"] == "bar":
        yield from _bars(trace, plane)
    elif trace["mode"] == "lines":
        yield from _lines(trace, plane)
    else:
        yield from _markers(trace, plane)


def _bars(trace: Trace, plane: _Plane) -> Iterator[str]:
    marker = trace["marker"]
    hatched = marker.get("pattern", {}).get("shape") == "/"
    outline = ' stroke-width="1"' if marker["line"]["width"] else ""
    for at, (base, width, row) in enumerate(zip(trace["base"], trace["x"], trace["y"], strict=True)):
        begin, end = plane.x(base), plane.x(base + width)
        if end < plane.left or begin > plane.right:
            continue
        begin, end = plane.inside(begin), plane.inside(end)
        top, bottom = plane.y(row - trace["width"] / 2), plane.y(row + trace["width"] / 2)
        colour = escape(_nth(marker["color"], at))
        place = f'x="{begin:.1f}" y="{top:.1f}" width="{max(end - begin, 0.8):.1f}" height="{bottom - top:.1f}"'
        edge = f' stroke="{colour}"{outline}' if outline else ""
        yield f'<rect {place} fill="{colour}"{edge} opacity="{_nth(marker["opacity"], at)}"/>'
        if hatched:
            yield f'<rect {place} fill="url(#hatch)"/>'


def _lines(trace: Trace, plane: _Plane) -> Iterator[str]:
    style = f'stroke="{escape(trace["line"]["color"])}" stroke-width="1.5" stroke-dasharray="1.5 2.5"'
    points = list(zip(trace["x"], trace["y"], strict=True))
    for (x0, y0), (x1, y1) in pairwise(points):
        if None not in (x0, y0, x1, y1) and plane.left <= plane.x(x0) <= plane.right:
            yield _line(plane.x(x0), plane.y(y0), plane.x(x1), plane.y(y1), style)


def _markers(trace: Trace, plane: _Plane) -> Iterator[str]:
    marker = trace["marker"]
    for at, (value, row) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        x = plane.x(value)
        if not plane.left - 1 <= x <= plane.right + 1:
            continue
        symbol, colour = str(_nth(marker["symbol"], at)), escape(_nth(marker["color"], at))
        is_open = symbol.endswith("-open") or symbol == "x"
        path = MARKERS.get(symbol.removesuffix("-open"), MARKERS["circle"])
        place = f'transform="translate({x:.1f} {plane.y(row):.1f})"'
        yield f'<path d="{path}" {place} fill="{"none" if is_open else colour}" stroke="{colour}" stroke-width="1.3"/>'


def _shape(shape: dict[str, Any], plane: _Plane) -> Iterator[str]:
    x0, x1 = plane.x(shape["x0"]), plane.x(shape["x1"])
    if x1 < plane.left or x0 > plane.right:
        return
    if shape["type"] == "rect":
        x0, x1 = plane.inside(x0), plane.inside(x1)
        place = f'x="{x0:.1f}" y="{plane.top:.1f}" width="{x1 - x0:.1f}" height="{plane.bottom - plane.top:.1f}"'
        yield f'<rect {place} fill="{escape(shape["fillcolor"])}" opacity="{shape["opacity"]}"/>'
        return
    dash = "6 4" if shape["line"].get("dash") == "dash" else "1.5 3"
    style = f'stroke="{escape(shape["line"]["color"])}" stroke-width="1.2" stroke-dasharray="{dash}"'
    yield _line(x0, plane.top, x0, plane.bottom, style)


def _note(note: dict[str, Any], plane: _Plane) -> str:
    x = plane.x(note["x"])
    if not plane.left <= x <= plane.right:
        return ""
    anchor = {"left": "start", "right": "end"}.get(note.get("xanchor", "center"), "middle")
    y = plane.top - note["yshift"] - 4 if note["y"] else plane.bottom - note["yshift"] + 10
    return _text(x + note.get("xshift", 0), y, note["text"], anchor)


def _legend(pairs: Sequence[tuple[str, str]], y: float) -> Iterator[str]:
    x = 8.0
    for name, text in pairs:
        if name in STYLES:
            colour = STYLES[name].colour
            yield f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="14" height="10" fill="{colour}"/>'
            if STYLES[name].pattern:
                yield f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="14" height="10" fill="url(#hatch)"/>'
            x += 19
        yield _text(x, y, escape(text))
        x += len(text) * CHARACTER_PX + 18


def _nth(values: Any, at: int) -> Any:
    """Return the value of a point: of a list its own, else the one of all points."""
    return values[at] if isinstance(values, list) else values
