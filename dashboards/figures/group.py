"""One group over time: states, generations, share of running resources, members and owners on one time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.figures.bars import bars, dotted_edges, max_lanes
from dashboards.figures.clock import time_axis
from dashboards.figures.running import running_bars
from dashboards.lake.lake import Row
from dashboards.text import between, clock, duration, figure_text, instant, member_label, resource, span, visible
from dashboards.urlstate import Window
from dashboards.views.plot import Figure, trace
from dashboards.views.sentences import numbered
from dashboards.views.theme import GLYPHS, LOUD, STYLES, hues, layout
from dashboards.views.timelines.lanes import Lane
from dashboards.views.timelines.owners import Owned
from dashboards.views.timelines.running import Running
from dashboards.views.timelines.segments import Segment
from dashboards.zone import zone
from schemas.states import Evidence, GroupEventKind

STRIP_PX, RUNNING_PX, LANE_PX, RIBBON_PX, GAP_PX, TOP_PX, BOTTOM_PX = 84, 38, 24, 20, 40, 26, 34
STATE, RUNNING, MEMBERS = "State", "Running", "Members"
LANES_SHOWN, RIBBON_SHOWN, BARS_SHOWN = 40, 60, 800
LABEL = 17
OWNS_NOTHING = "#7E95AA"
"""Colour of a member that owns nothing of what is drawn; others have the colour of what they own."""
FINE = 300
"""A span below this fraction of the window is one or two pixels wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The figure, with the numbers of lanes and resources in it."""

    figure: Figure
    lanes: int
    resources: int


def group_figure(
    strip: Sequence[Segment],
    generations: Sequence[Row],
    lanes: Sequence[Lane],
    owned: Sequence[Owned],
    events: Sequence[Row],
    window: Window,
    hrefs: Mapping[tuple[int, int], str],
    unit: str = "partition",
    delays: Sequence[Segment] = (),
    running: Sequence[Running] = (),
) -> Drawn:
    """Draw the group.

    `hrefs` maps (incarnation, generation) to the address of the rebalance. `unit` is the noun for a resource of the
    group. `delays` holds the spans in which Connect delays work. `running` is drawn if it has steps.
    """
    fine = window.width / FINE
    lanes = lanes[: min(LANES_SHOWN, max_lanes([lane.memberships for lane in lanes], BARS_SHOWN, fine))]
    # If not all resources fit, draw those with the longest stops.
    worst = sorted(owned, key=lambda o: -o.stopped_ms)
    kept = {
        (o.name, o.index) for o in worst[: min(RIBBON_SHOWN, max_lanes([o.spans for o in worst], BARS_SHOWN, fine))]
    }
    owned = [o for o in owned if (o.name, o.index) in kept]
    sections = [
        (STATE, STRIP_PX),
        (RUNNING, RUNNING_PX if running else 0),
        (MEMBERS, LANE_PX * len(lanes)),
        (f"Owner of each {unit}", RIBBON_PX * len(owned)),
    ]
    sections = [(title, px) for title, px in sections if px]
    axes = {title: f"y{number}" for number, (title, _) in enumerate(sections[1:], start=2)}
    figure: Figure = {"data": [], "layout": _axes(sections, lanes, owned, window)}
    _strip(figure, strip, generations, events, window, hrefs)
    if delays:
        waits = [(1.03, s, STYLES["assigning"].colour, "", [_delay_tip(s), ""]) for s in delays]
        figure["data"].append(bars(waits, height=0.1, axis="y", fine=window.width / FINE))
    colours = hues(sorted({held.kind for o in owned for held in o.spans}))
    if running:
        figure["data"] += running_bars(running, unit, axes[RUNNING])
    if lanes:
        _lanes(figure, lanes, events, fine, axes[MEMBERS], colours)
    if owned:
        _ribbon(figure, owned, window, axes[f"Owner of each {unit}"], colours)
    return Drawn(figure=figure, lanes=len(lanes), resources=len(owned))


def _strip(
    figure: Figure,
    strip: Sequence[Segment],
    generations: Sequence[Row],
    events: Sequence[Row],
    window: Window,
    hrefs: Mapping[tuple[int, int], str],
) -> None:
    for name, style in STYLES.items():
        rows = [
            (style.height / 2, s, style.colour, "", [_state_tip(s), hrefs.get((s.incarnation, s.generation or -1), "")])
            for s in strip
            if s.kind == name
        ]
        if rows:
            figure["data"].append(
                bars(rows, height=style.height, axis="y", style=style, named=name, fine=window.width / FINE)
            )
    figure["data"].append(dotted_edges(((0, STYLES[s.kind].height, s) for s in strip if s.kind != "unknown"), axis="y"))
    shown = sorted(generations, key=lambda g: g["joined_at"])
    figure["data"].append(
        trace(
            "scatter",
            x=[g["joined_at"] for g in shown],
            y=[1.15] * len(shown),
            mode="markers+text",
            text=_numbers(shown, window),
            textposition="top center",
            textfont={"size": 10},
            marker={"symbol": "line-ns", "size": 9, "line": {"width": 1.5, "color": "#808488"}},
            customdata=[[generation_tip(g), hrefs.get((g["incarnation"], g["generation_id"]), "")] for g in shown],
            hovertemplate="%{customdata[0]}<extra></extra>",
        )
    )
    _glyphs(figure, [(1.85, e) for e in events if not e["member_id"]], "y")


def _numbers(generations: Sequence[Row], window: Window) -> list[str]:
    """Return the generation ids, without those that would overlap the previous label."""
    shown, last = [], float("-inf")
    for g in generations:
        has_room = g["joined_at"] - last > window.width * 0.025
        shown.append(str(g["generation_id"]) if has_room else "")
        last = g["joined_at"] if has_room else last
    return shown


def _delay_tip(s: Segment) -> str:
    lines = [
        "<b>work waits</b> for a worker to come back",
        f"from {instant(s.start)} {zone()}",
        f"to {clock(int(s.proof))}",
    ]
    return "<br>".join([*lines, f"generation {s.generation}", s.evidence])


def _state_tip(s: Segment) -> str:
    style = STYLES[s.kind]
    lines = [f"<b>{style.word}</b> {duration(s.end - s.start)}", f"{style.meaning}"]
    if s.start > s.earliest:
        lines.append(f"began between {clock(s.earliest)} and {clock(s.start)} {zone()}")
    else:
        lines.append(f"from {instant(s.start)} {zone()}")
    if s.proof:
        lines.append(f"generation {s.generation} · {s.proof}" if s.generation is not None else figure_text(s.proof))
    return "<br>".join([*lines, s.evidence])


def generation_tip(g: Row) -> str:
    took = (
        duration(g["rebalance_ms"])
        if g["rebalance_ms"] is not None
        else between(g["rebalance_ms_min"], g["rebalance_ms_max"])
    )
    return (
        f"<b>{numbered(g)}</b> {instant(g['joined_at'])} {zone()}<br>"
        f"{g['trigger'].replace('_', ' ')} ({g['trigger_evidence']}) · took {took}<br>"
        f"{g['member_count']} members, {_moved(g)}"
    )


def _moved(g: Row) -> str:
    if g["resources_moved"] is None:
        return "number of moved resources unknown"
    return f"{g['resources_moved']} of {g['resources_assigned']} moved"


def _lanes(
    figure: Figure, lanes: Sequence[Lane], events: Sequence[Row], fine: float, axis: str, colours: Mapping[str, str]
) -> None:
    row_of = {member: y for y, lane in enumerate(lanes) for member in lane.members}
    figure["data"].append(
        bars(
            [
                (y, held, colours.get(held.kind, OWNS_NOTHING), "", [_membership_tip(lane.members[i], held), ""])
                for y, lane in enumerate(lanes)
                for i, held in enumerate(lane.memberships)
            ],
            height=0.3,
            axis=axis,
            fine=fine,
        )
    )
    figure["data"].append(
        dotted_edges(
            ((y - 0.3, y + 0.3, membership) for y, lane in enumerate(lanes) for membership in lane.memberships),
            axis=axis,
        )
    )
    _glyphs(figure, [(row_of[e["member_id"]], e) for e in events if e["member_id"] in row_of], axis)


def _membership_tip(member: str, membership: Segment) -> str:
    when = span(instant(membership.start), instant(membership.latest))
    return f"<b>{figure_text(member)}</b><br>{when} {zone()}<br>{membership.evidence}"


def _glyphs(figure: Figure, placed: Sequence[tuple[float, Row]], axis: str) -> None:
    known = [(y, e, GLYPHS[GroupEventKind(e["kind"])]) for y, e in placed if e["kind"] in GLYPHS]
    if not known:
        return
    colours = [STYLES["stopped"].colour if e["kind"] in LOUD else "#808488" for _, e, _ in known]
    hollow = [e["evidence"] == Evidence.INFERRED and "-open" not in glyph.symbol for _, e, glyph in known]
    figure["data"].append(
        trace(
            "scatter",
            x=[e["event_at"] for _, e, _ in known],
            y=[y for y, _, _ in known],
            mode="markers",
            marker={
                "symbol": [
                    f"{glyph.symbol}-open" if open_ else glyph.symbol
                    for (_, _, glyph), open_ in zip(known, hollow, strict=True)
                ],
                "size": 10,
                "color": colours,
                "line": {"width": 1, "color": colours},
            },
            customdata=[[event_tip(e), ""] for _, e, _ in known],
            hovertemplate="%{customdata[0]}<extra></extra>",
            yaxis=axis,
            cliponaxis=False,
        )
    )


def event_tip(e: Row) -> str:
    glyph = GLYPHS[GroupEventKind(e["kind"])]
    member_text = (
        figure_text(member_label(e["member_id"], e["group_instance_id"], e["client_id"])) if e["member_id"] else ""
    )
    lines = [
        f"<b>{glyph.character} {member_text} {glyph.word}</b>",
        f"{instant(e['event_at'])} {zone()}",
        e["evidence"],
    ]
    if e["detail"]:
        lines.append(figure_text(e["detail"]))
    if e["client_host"]:
        lines.append(figure_text(e["client_host"].removeprefix("/")))
    return "<br>".join(lines)


def _ribbon(figure: Figure, owned: Sequence[Owned], window: Window, axis: str, colours: Mapping[str, str]) -> None:
    figure["data"].append(
        bars(
            [
                (
                    y,
                    held,
                    colours[held.kind],
                    figure_text(held.kind, 18) if held.end - held.start > window.width * 0.04 else "",
                    [_owner_tip(o, held), ""],
                )
                for y, o in enumerate(owned)
                for held in o.spans
            ],
            height=0.84,
            axis=axis,
            fine=window.width / FINE,
        )
    )
    figure["data"].append(
        dotted_edges(((y - 0.39, y + 0.39, held) for y, o in enumerate(owned) for held in o.spans), axis=axis)
    )


def _owner_tip(o: Owned, held: Segment) -> str:
    when = span(instant(held.start), instant(held.end))
    caption = figure_text(resource(o.name, o.index))
    return f"<b>{caption}</b><br>{figure_text(held.kind)}<br>{when} {zone()}<br>{held.evidence}"


def _axes(
    sections: Sequence[tuple[str, int]], lanes: Sequence[Lane], owned: Sequence[Owned], window: Window
) -> dict[str, Any]:
    plot = sum(px for _, px in sections) + GAP_PX * (len(sections) - 1)
    out = layout(plot + TOP_PX + BOTTOM_PX, margin={"l": 120, "r": 14, "t": TOP_PX, "b": BOTTOM_PX})
    out["xaxis"] = time_axis(window.start, window.end) | {"anchor": "free", "position": 0}
    ticks = {
        STATE: {"range": [0, 2], "showticklabels": False},
        RUNNING: {"range": [0, 1], "tickvals": [0, 1], "ticktext": ["none", "all"]},
        MEMBERS: _rows([visible(lane.title, LABEL) for lane in lanes]),
    }
    owners = _rows([resource(o.name, o.index, LABEL) for o in owned])
    out["annotations"], top = [], plot
    for number, (title, px) in enumerate(sections, start=1):
        name = "yaxis" if number == 1 else f"yaxis{number}"
        out[name] = {
            "domain": [max(0.0, (top - px) / plot), top / plot], "fixedrange": True, "zeroline": False,
            "showgrid": False, "ticks": "", **ticks.get(title, owners),
        }  # fmt: skip
        out["annotations"].append(
            {"text": f"<b>{title}</b>", "xref": "paper", "yref": "paper", "x": 0, "y": top / plot, "xshift": -120,
             "xanchor": "left", "yanchor": "bottom", "yshift": 6, "showarrow": False, "font": {"size": 11}}
        )  # fmt: skip
        top -= px + GAP_PX
    return out


def _rows(labels: Sequence[str]) -> dict[str, Any]:
    """Return an axis with one row per label, the first on top. Labels are untrusted and are escaped here."""
    return {
        "tickvals": list(range(len(labels))),
        "ticktext": [figure_text(label, 40) for label in labels],
        "range": [len(labels) - 0.5, -0.5],
    }
