"""One rebalance in detail, in seconds since it began: prepare, assign, stable, first commit of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.figures.bars import bars, dotted_edges
from dashboards.figures.flags import flagged
from dashboards.lake.lake import Row
from dashboards.queries.store import Rebalance
from dashboards.text import between, duration, figure_text, instant, member_label, resource
from dashboards.urlstate import Window
from dashboards.views.plot import Figure, trace
from dashboards.views.theme import GLYPHS, STYLES, layout
from dashboards.views.timelines.segments import PARTIAL_MODES, Segment
from dashboards.zone import zone
from schemas.states import Evidence, GroupEventKind, GroupProtocol, StallCause
from schemas.written import ABOUT

ROW_PX = 22
MEMBERS_SHOWN, RESOURCES_SHOWN = 40, 60
SCALE = 0.001
"""The axis shows seconds since the start. assets/zoom.js converts them to timestamps with the figure's `meta`."""
QUIET = "#7E95AA"
GONE = (GroupEventKind.LEFT, GroupEventKind.SESSION_EXPIRED, GroupEventKind.POLL_TIMEOUT)


_Point = tuple[int, str, str, str]


@dataclass(frozen=True, slots=True)
class _Line:
    """One row of the figure."""

    label: str
    style: str
    segment: Segment | None
    tip: str
    points: tuple[_Point, ...] = ()
    """(timestamp, symbol, colour, tooltip)"""
    height: float = 0.62


def began(generation: Row) -> int:
    """Return the zero of the figure: the recorded start, or else its upper bound."""
    at = generation["prepared_at"] if generation["prepared_at"] is not None else generation["prepared_at_latest"]
    return int(at)


def marked_waterfall(found: Rebalance, marks: Sequence[Row]) -> tuple[Figure, Window]:
    """Return the figure with flags for the marks within it, and the time that it shows."""
    figure, origin = waterfall(found), began(found.generation)
    first, last = (round(origin + x / SCALE) for x in figure["layout"]["xaxis"]["range"])
    flagged(figure, marks, first=first, last=last, origin=origin, scale=SCALE)
    return figure, Window(first, last, is_live=False)


def waterfall(found: Rebalance) -> Figure:
    g = found.generation
    origin = began(g)
    if g["group_protocol"] == GroupProtocol.CLASSIC:
        lines = [_prepare(g), *_members(found), *_assign(g), *_resources(found)]
    else:
        lines = [*_assign(g), *_reconciled(found), *_resources(found)]
    figure: Figure = {"data": [], "layout": _layout(lines, g, origin)}
    for name, height in dict.fromkeys((line.style, line.height) for line in lines if line.segment is not None):
        style = STYLES.get(name)
        rows = [
            (y, line.segment, style.colour if style else QUIET, "", [line.tip])
            for y, line in enumerate(lines)
            if (line.style, line.height) == (name, height) and line.segment is not None
        ]
        figure["data"].append(
            bars(rows, height=height, axis="y", style=style, named=name if style else None, scale=SCALE, origin=origin)
        )
    figure["data"].append(
        dotted_edges(
            ((y - 0.4, y + 0.4, line.segment) for y, line in enumerate(lines) if line.segment is not None),
            axis="y",
            scale=SCALE,
            origin=origin,
        )
    )
    points = [(y, point) for y, line in enumerate(lines) for point in line.points]
    figure["data"].append(
        trace(
            "scatter",
            x=[(at - origin) / 1000 for _, (at, *_) in points],
            y=[y for y, _ in points],
            mode="markers",
            marker={
                "symbol": [symbol for _, (_, symbol, _, _) in points],
                "color": [colour for _, (_, _, colour, _) in points],
                "size": 9,
                "line": {"width": 1, "color": [colour for _, (_, _, colour, _) in points]},
            },
            customdata=[[tip] for _, (*_, tip) in points],
            hovertemplate="%{customdata[0]}<extra></extra>",
        )
    )
    return figure


def _layout(lines: Sequence[_Line], g: Row, origin: int) -> dict[str, Any]:
    ends = [at for line in lines if (s := line.segment) for at in (s.earliest, s.latest)]
    done = max(ends, default=origin)
    # The first commit of an idle partition may be hours later, and must not compress the rebalance itself.
    first = [at for line in lines for at, *_ in line.points if at <= done + max(10_000, done - min(ends, default=done))]
    left, right = (min([*ends, *first]) - origin) / 1000, (max([*ends, *first]) - origin) / 1000
    margin = max(0.05, (right - left) * 0.03)
    marks = [(began(g), "prepare"), (g["joined_at"], "joined"), (g["completed_at"], "stable")]
    return layout(
        ROW_PX * len(lines) + 56,
        meta={"origin": origin, "scale": SCALE},
        margin={"l": 120, "r": 14, "t": 22, "b": 34},
        xaxis={"range": [left - margin, right + margin], "ticksuffix": " s", "zeroline": False, "autotickangles": [0]},
        yaxis={
            "tickvals": list(range(len(lines))),
            "ticktext": [figure_text(line.label, 17) for line in lines],
            "range": [len(lines) - 0.4, -0.6],
            "showgrid": False,
            "zeroline": False,
            "fixedrange": True,
            "ticks": "",
        },
        shapes=[
            {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1,
             "line": {"width": 1, "dash": "dot", "color": "#808488"}, "layer": "below"}
            for at, _ in marks if at is not None for x in [(at - origin) / 1000]
        ],
    )  # fmt: skip


def _prepare(g: Row) -> _Line:
    latest = began(g)
    earliest = latest if g["prepared_at"] is not None else min(g["prepared_at_earliest"], latest)
    took = (
        duration(g["join_ms"])
        if g["join_ms"] is not None
        else between(g["joined_at"] - latest, g["joined_at"] - earliest)
    )
    return _Line(
        label="prepare",
        style="partial" if g["rebalance_mode"] in PARTIAL_MODES else "stopped",
        segment=_segment(earliest, latest, g["joined_at"], g["joined_at"], g["evidence"]),
        tip=f"<b>prepare</b> {took}<br>until every member has rejoined<br>{g['evidence']}",
    )


def _members(found: Rebalance) -> list[_Line]:
    """Return the members that the rebalance waited for, slowest last, and then the members that left."""
    start = began(found.generation)
    slowest = found.generation["slowest_member_id"]
    came = sorted(
        (m for m in found.members if m["rejoined_at_latest"] is not None), key=lambda m: m["rejoined_at_latest"]
    )[-MEMBERS_SHOWN:]
    lines = []
    for m in came:
        label = member_label(m["member_id"], m["group_instance_id"], m["client_id"])
        early = m["rejoined_at_earliest"] if m["rejoined_at_earliest"] is not None else m["rejoined_at_latest"]
        late = m["rejoined_at_latest"]
        grade = Evidence.OBSERVED if late - early <= 1 else Evidence.BOUNDED
        after = between(max(0, early - start), max(0, late - start))
        tip = f"<b>{figure_text(label)}</b> rejoined {after} after the start"
        lines.append(
            _Line(
                label=label,
                style="stopped" if m["member_id"] == slowest else "member",
                segment=_segment(start, start, max(start, early), max(start, late), grade),
                tip=tip + ("<br>everyone waited for it" if m["member_id"] == slowest else ""),
                points=((late, "triangle-up", QUIET, tip),),
            )
        )
    for e in found.events:
        if e["kind"] in GONE:
            glyph = GLYPHS[GroupEventKind(e["kind"])]
            label = member_label(e["member_id"], e["group_instance_id"], e["client_id"])
            caption = f"{glyph.character} {figure_text(label)} {glyph.word}"
            tip = f"<b>{caption}</b><br>{instant(e['event_at'])} {zone()}<br>{e['evidence']}"
            lines.append(
                _Line(label, "member", None, tip, ((e["event_at"], glyph.symbol, STYLES["stopped"].colour, tip),))
            )
    return lines


def _assign(g: Row) -> list[_Line]:
    if g["synced_at"] is None:
        return []
    lines = [
        _Line(
            label="assign",
            style="assigning",
            segment=_segment(g["joined_at"], g["joined_at"], g["synced_at"], g["synced_at"], Evidence.OBSERVED),
            tip=f"<b>assign</b> {duration(g['sync_ms'])}<br>until the assignment was stored",
        )
    ]
    if g["completed_at"] is not None:
        tip = f"<b>stable</b> {instant(g['completed_at'])} {zone()}"
        lines.append(
            _Line("stable", "member", None, tip, ((g["completed_at"], "circle", STYLES["working"].colour, tip),))
        )
    return lines


def _reconciled(found: Rebalance) -> list[_Line]:
    """Return when each member reached the assignment of the coordinator (KIP-848), the last one at the end."""
    g = found.generation
    reached = sorted((m for m in found.members if m["reconciled_at"] is not None), key=lambda m: m["reconciled_at"])
    lines = []
    for m in reached[-MEMBERS_SHOWN:]:
        label = member_label(m["member_id"], m["group_instance_id"], m["client_id"])
        start = g["synced_at"] if g["synced_at"] is not None else g["joined_at"]
        at = m["reconciled_at"]
        tip = f"<b>{figure_text(label)}</b> reconciled {duration(max(0, at - start))} after the assignment"
        lines.append(
            _Line(
                label=label,
                style="member",
                segment=_segment(start, start, max(start, at), max(start, at), Evidence.OBSERVED),
                tip=tip,
                points=((at, "triangle-up", QUIET, tip),),
            )
        )
    return lines


def _resources(found: Rebalance) -> list[_Line]:
    worst = sorted(found.stopped, key=lambda s: -(s["stopped_ms"] or 0))[:RESOURCES_SHOWN]
    g = found.generation
    return [
        _resource(s, g["completed_at"] or g["joined_at"]) for s in sorted(worst, key=lambda s: (s["name"], s["index"]))
    ]


def _resource(s: Row, until: int) -> _Line:
    """Return the line of a stall; one without an end is drawn to the end of the rebalance, with an arrow."""
    name = f"<b>{figure_text(resource(s['name'], s['index']))}</b>"
    tip = f"{name} stopped {stopped(s)}<br>{s['cause'].replace('_', ' ')} · {s['evidence']}"
    back, resumed = s["resumed_at_earliest"], s["resumed_at_latest"]
    points: tuple[_Point, ...] = ()
    if back is None:
        back = resumed = max(until, s["stopped_at_latest"])
        points = ((back, "triangle-right-open", STYLES["stopped"].colour, f"{name} no owner yet"),)
    elif s["first_commit_at"] is not None:
        first = f"{name} first commit {instant(s['first_commit_at'])} {zone()}<br>offset {s['first_committed_offset']}"
        points = ((s["first_commit_at"], "diamond-open", STYLES["working"].colour, first),)
    return _Line(
        label=resource(s["name"], s["index"], 17),
        style="partial" if s["cause"] == StallCause.MOVED else "stopped",
        segment=_segment(s["stopped_at_earliest"], s["stopped_at_latest"], back, resumed, s["evidence"]),
        tip=tip,
        points=points,
        height=0.36,
    )


def stopped(stall: Row) -> str:
    """Return the length of a stall, such as `≈ 24 s (23.8 s to 24.3 s)` with a dash; `since then` if it has no end."""
    if stall["stopped_ms"] is None:
        return "since then"
    limits = between(stall["stopped_ms_min"], stall["stopped_ms_max"])
    return (
        duration(stall["stopped_ms"])
        if limits == duration(stall["stopped_ms"])
        else f"{ABOUT} {duration(stall['stopped_ms'])} ({limits})"
    )


def _segment(earliest: int, start: int, end: int, latest: int, evidence: str) -> Segment:
    return Segment(
        earliest=min(earliest, start), start=start, end=max(start, end), latest=max(start, end, latest), kind="",
        evidence=evidence,
    )  # fmt: skip
