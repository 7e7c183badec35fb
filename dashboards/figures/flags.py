"""Marks on a time axis: a dashed vertical line with a flag and its text on top, never by colour alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.lake.lake import Row
from dashboards.text import figure_text, instant
from dashboards.views.marks import flag_of, mark_subject
from dashboards.views.plot import Figure
from dashboards.zone import zone

FLAGS_SHOWN = 30
LABEL = 16
ROOM = 0.1
"""Fraction of the width for a label. A flag with less room shows its text only on hover and in the table."""
TOP_PX = 26
INK = "#808488"


def flagged(figure: Figure, marks: Sequence[Row], *, first: int, last: int, origin: int = 0, scale: float = 1) -> None:
    """Draw the marks from `first` to `last` (epoch milliseconds); if there are too many, only the newest ones.

    `origin` and `scale` convert timestamps to x, as in `bars`.
    """
    shown = [m for m in marks if first <= m["marked_at"] <= last][-FLAGS_SHOWN:]
    if not shown:
        return
    lines, labels, labelled = [], [], float("-inf")
    for mark in shown:
        x, at = (mark["marked_at"] - origin) * scale, mark["marked_at"]
        has_room = at - labelled >= (last - first) * ROOM
        labelled = at if has_room else labelled
        lines.append(_line(x))
        labels.append(_label(mark, x, has_room=has_room, is_late=at > last - (last - first) * ROOM))
    layout = figure["layout"]
    layout["shapes"] = [*layout.get("shapes", ()), *lines]
    layout["annotations"] = [*layout.get("annotations", ()), *labels]
    layout["margin"] = layout["margin"] | {"t": max(layout["margin"]["t"], TOP_PX)}


def _line(x: float) -> dict[str, Any]:
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1,
        "line": {"width": 1.5, "dash": "dash", "color": INK},
    }  # fmt: skip


def _label(mark: Row, x: float, *, has_room: bool, is_late: bool) -> dict[str, Any]:
    flag = flag_of(mark)
    text = f"{flag.character} {figure_text(mark['text'], LABEL)}" if has_room else flag.character
    tip = [f"<b>{flag.character} {flag.word} {figure_text(mark['text'])}</b>", f"{instant(mark['marked_at'])} {zone()}"]
    tip.append(figure_text(mark_subject(mark)))
    if mark["marked_by"] is not None:
        tip.append(f"by {figure_text(mark['marked_by'])}")
    return {
        "text": text, "hovertext": "<br>".join(tip), "x": x, "xref": "x", "y": 1, "yref": "paper",
        "yanchor": "bottom", "yshift": 1, "xanchor": "right" if is_late else "left", "xshift": 5 if is_late else -5,
        "showarrow": False, "font": {"size": 11},
    }  # fmt: skip
