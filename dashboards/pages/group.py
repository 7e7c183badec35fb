"""Group: the states, members and owners of one group over time, and its generations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.flags import flagged
from dashboards.figures.group import Drawn, group_figure
from dashboards.figures.lag import lag_figure
from dashboards.figures.running import running_words
from dashboards.freshness import is_stale
from dashboards.lake.lake import Row, Rows
from dashboards.queries.lag import Behind, lag_sentence
from dashboards.queries.store import Store
from dashboards.text import ABSENT, duration, host, instant, member_label, resource, span, visible
from dashboards.urlstate import ALL, State, Window
from dashboards.views import diagnoses, log_sources, patterns, sentences
from dashboards.views.clients.libraries import libraries_sentence
from dashboards.views.clients.measured import software_sentence
from dashboards.views.components import (
    aria,
    document_link,
    empty,
    grid,
    legend,
    marks_table,
    old_state,
    panel,
    state_word,
    table,
)
from dashboards.views.group_timeline import GroupTimeline, group_timeline, named_group
from dashboards.views.instants import group_instant, instant_panel
from dashboards.views.ranges import keyed, ranges
from dashboards.views.resume_position import all_resumed, resumed_from
from dashboards.views.theme import GLYPHS, STYLES, style_of
from dashboards.views.timelines.lanes import Lane
from dashboards.views.timelines.owners import Owned
from dashboards.views.timelines.segments import proof
from dashboards.views.verdicts import group_panel
from dashboards.zone import zone
from schemas.states import GroupEventKind
from schemas.written import capitalized, count

SAMPLES_SHOWN = 200
COLUMNS: list[dict[str, Any]] = [
    {"headerName": "Generation", "field": "number", "minWidth": 120, "flex": 1, "cellRenderer": "RegroupLink"},
    {"headerName": "Joined (UTC)", "field": "joined", "minWidth": 215, "flex": 2, "cellRenderer": "RegroupText",
     "cellRendererParams": {"text": "joined_text"}},
    {"headerName": "Trigger", "field": "trigger", "minWidth": 260, "flex": 4, "tooltipField": "trigger"},
    {"headerName": "Evidence", "field": "evidence", "minWidth": 100, "flex": 1, "cellRenderer": "RegroupEvidence"},
    {"headerName": "Duration", "field": "ms", "minWidth": 140, "flex": 1, "type": "rightAligned",
     "cellRenderer": "RegroupText", "cellRendererParams": {"text": "took"}},
    {"headerName": "Members", "field": "members", "minWidth": 95, "flex": 1, "type": "rightAligned"},
    {"headerName": "Moved", "field": "moved", "minWidth": 100, "flex": 1, "type": "rightAligned",
     "cellRenderer": "RegroupText", "cellRendererParams": {"text": "moved_text"}},
    {"headerName": "Lost", "field": "lost", "minWidth": 220, "flex": 2, "type": "rightAligned",
     "cellRenderer": "RegroupText", "cellRendererParams": {"text": "lost_text"}},
]  # fmt: skip


def render(store: Store, state: State, now: int) -> list[Component]:
    group = named_group(store, state)
    timeline = group_timeline(store, state, now)
    if timeline is None or group is None:
        return [_head(state, group or "", None, "", None), _not_known(store, state)]
    found, view, rows, inside = timeline.found, timeline.view, timeline.rows, timeline.inside
    strip, lived, owned, waits, unit = timeline.strip, timeline.lanes, timeline.owned, timeline.delays, timeline.unit
    generations, members, stalls, events = rows.generations, rows.members, rows.stalls, rows.events
    hrefs = {(g["incarnation"], g["generation_id"]): _link(state, group, g) for g in generations.rows}
    drawn = group_figure(strip, inside, lived, owned, events.rows, view, hrefs, unit, waits, timeline.running)
    flagged(drawn.figure, rows.marks, first=view.start, last=view.end)
    # Parts that appear and disappear have their own container, so the rest of the page is not replaced (update.js).
    quiet = html.Div([] if inside else [_quiet(state, timeline)])
    old = timeline.last if is_stale(timeline.last, now) else None
    return [
        _head(state, group, found, timeline.shown, view, inside, old),
        quiet,
        html.Div(group_panel(rows.verdicts, unit)),
        panel(
            "What happened",
            sentences.group(inside, found, is_unread=timeline.is_unread, has_gaps=bool(rows.gaps.rows))
            + (f" Work resumed: {resumed_from(stalls.rows, unit)}." if stalls.rows else "")
            + all_resumed(stalls.rows, unit)
            + sentences.waited(waits)
            + libraries_sentence(rows.libraries)
            + software_sentence(rows.software)
            + sentences.unread_note(rows.gaps.rows)
            + _shown(drawn, lived, owned, capped=timeline.is_capped),
            drawn.figure,
            legend(),
            name="group",
            table=_tables(state, timeline),
        ),
        html.Div(_instants(store, state, timeline)),
        html.Div(_behind(rows.behind, view)),
        html.Div(patterns.panel(rows.patterns)),
        html.Div(diagnoses.panel(rows.diagnosis)),
        _generations(generations, inside, hrefs, sentences.names([*members.rows, *events.rows])),
        log_sources.by_source(rows.lines),
    ]


def _instants(store: Store, state: State, timeline: GroupTimeline) -> list[Component]:
    found, until = timeline.found, timeline.seen.last_at
    one, then = (None if at is None else group_instant(store, found, at, until) for at in (state.at, state.against))
    generations = timeline.rows.generations.rows
    changes = (at for g in generations for at in (g["joined_at"], g["completed_at"]) if at is not None)
    return [instant_panel(state, timeline.view, one, then, sorted(set(changes)))]


def _behind(found: list[Behind], view: Window) -> list[Component]:
    """Return the lag around the group's changes; empty if the poll kept no end offsets."""
    if not found:
        return []
    rows = [(instant(each.at), str(each), "observed" if each.least == each.most else "bounded") for each in found]
    summary = (
        f"Uncommitted records around changes of the group, and otherwise every ten minutes."
        f"{lag_sentence(found, view.start, view.end)}"
        " There are no measurements in between."
    )
    as_table = table(("At (UTC)", "Records behind", "Evidence"), rows[-SAMPLES_SHOWN:])
    return [panel("How far behind", summary, lag_figure(found, view), name="behind", table=as_table)]


def _link(state: State, group: str, g: Row) -> str:
    return state.href(
        "rebalance", cluster=state.cluster, group=group, incarnation=g["incarnation"], generation=g["generation_id"]
    )


def _steps() -> list[Component]:
    """Return the buttons that lead to the rebalance before and after the one in view."""
    return [
        html.Button(sign, className="button", **keyed(key), **aria(f"{word} rebalance"), title=f"{word} ({key})")
        for key, sign, word in ((",", "← rebalance", "previous"), (".", "rebalance →", "next"))
    ]


def _document(state: State, group: str, inside: Sequence[Row]) -> list[Component]:
    """Return a link to the document of the rebalance in the range that cost most; nothing without a rebalance."""
    worst = max(inside, key=lambda g: (g["lost"], g["joined_at"]), default=None)
    if worst is None:
        return []
    key = {"incarnation": worst["incarnation"], "generation": worst["generation_id"]}
    return [document_link(state, "Document of the costliest", cluster=state.cluster, group=group, **key)]


def _trace(state: State, group: str) -> Component:
    """Return a link that saves the range as a file for Perfetto."""
    href = state.href("trace", cluster=state.cluster, group=group, lanes=state.lanes)
    title = "A file with this range, for ui.perfetto.dev or any viewer of the Trace Event Format"
    return html.A("Trace", href=href, download="", title=title, className="button")


def _head(
    state: State,
    group: str,
    found: Row | None,
    shown: str,
    view: Window | None,
    inside: Sequence[Row] = (),
    old: int | None = None,
) -> Component:
    """Return the head of the page. `old` is the time (ms) after which nothing is known, or None."""
    about: list[Any] = []
    if found is not None:
        style = style_of(found["state"], found["group_protocol"])
        state_now = state_word(style, found["state"]) if old is None else old_state(style, found["state"], old)
        kind = " · ".join(
            visible(x, 60) for x in (found["group_type"], found["group_protocol"], found["assignor"]) if x is not None
        )
        members = "" if found["member_count"] is None else f" · {count(found['member_count'], 'member')}"
        about = [
            state_now,
            html.Span(f"{kind}{members} · since {instant(found['state_since_at'])[:19]} {zone()}", className="quiet"),
            dcc.Link("Advice for this group", href=state.href("advice", q=group)),
        ]
    return html.Div(
        [
            html.Div(
                [
                    html.P(
                        [dcc.Link("Fleet", href=state.href("fleet")), " / ", visible(state.cluster, 60)],
                        className="crumbs",
                    ),
                    html.H1(visible(group, 160)),
                    html.P(about, className="about"),
                ]
            ),
            html.Nav(
                [] if view is None else [*_steps(), *_document(state, group, inside), _trace(state, group)],
                className="steps",
                **aria("rebalances of this range"),
            ),
            ranges(state, shown, view),
        ],
        className="head",
    )


def _not_known(store: Store, state: State) -> Component:
    text = (
        "The tables hold no group of this name in this cluster."
        if store.versions()
        else "The warehouse has no tables. This page updates when data arrives."
    )
    return empty(
        "missing", "Nothing here yet", text, dcc.Link("All groups", href=state.href("fleet"), className="button")
    )


def _quiet(state: State, timeline: GroupTimeline) -> Component:
    found, seen, view = timeline.found, timeline.seen, timeline.view
    everything = dcc.Link(
        "Show all data",
        href=state.href("group", cluster=state.cluster, group=found["group_id"], from_=ALL, to=""),
        className="button",
    )
    if style_of(found["state"]) == "unknown":
        text = "Its records show that it exists, but not how it rebalanced."
        return empty("unobserved", "Not observed", text)
    if seen.last_at < view.start:
        text = f"The newest record is of {instant(seen.last_at)[:19]} {zone()}, before this range begins."
        return empty("unobserved", "Not observed in this range", text, everything)
    first = found["first_seen_at"]
    if first is not None and first >= view.end:
        text = f"The first record of this group is of {instant(first)[:19]} {zone()}, after this range ends."
        return empty("unobserved", "Not observed in this range", text, everything)
    if timeline.is_unread:
        text = "The records of this range were not read."
        return empty("unobserved", "Not observed in this range", text, everything)
    if timeline.rows.gaps.rows:
        text = "This group did not rebalance in the part of this range that was read."
        return empty("unobserved", "Partly not observed", text, everything)
    return empty("nothing", "Nothing happened", "This group did not rebalance in this range.", everything)


def _shown(drawn: Drawn, lived: list[Lane], owned: list[Owned], *, capped: bool) -> str:
    notes = []
    if drawn.lanes < len(lived):
        notes.append(f"{drawn.lanes} of {len(lived)} member lanes are drawn")
    if drawn.resources < len(owned):
        notes.append(f"{drawn.resources} of {len(owned)} partitions are drawn, those with the longest stops")
    if capped:
        notes.append("only the newest part of this range was read: choose a shorter one")
    return "".join(f" {capitalized(note)}." for note in notes)


def _tables(state: State, timeline: GroupTimeline) -> Component:
    return html.Div(
        [
            html.H3("States"),
            table(
                ("From (UTC)", "To (UTC)", "State", "Evidence", "Generation", "Proof"),
                [
                    (_edge(s.earliest, s.start), instant(s.end), STYLES[s.kind].word, s.evidence,
                     ABSENT if s.generation is None else str(s.generation), s.proof or ABSENT)
                    for s in timeline.strip
                ],
            ),
            html.H3("Running"),
            table(
                ("From (UTC)", "To (UTC)", "Lowest number running", "Evidence"),
                [
                    (instant(r.start), instant(r.end), f"{running_words(r)} {timeline.unit}s", r.evidence)
                    for r in timeline.running
                ],
                empty="It is not known what ran in this range.",
            ),
            html.H3("Events"),
            table(
                ("At (UTC)", "What", "Member", "Host", "Evidence", "Detail"),
                [_event(e) for e in reversed(timeline.rows.events.rows[:200])],
                empty="No event in this range.",
            ),
            html.H3("Marks"),
            marks_table(timeline.rows.marks),
            html.H3("Members"),
            table(
                ("Member", "From (UTC)", "Until (UTC)", "Evidence", "Lane"),
                [
                    (visible(member, 120), _edge(s.earliest, s.start), _edge(s.end, s.latest), s.evidence,
                     _pin(state, lane.label))
                    for lane in timeline.lanes[:100]
                    for member, s in zip(lane.members, lane.memberships, strict=True)
                ],
                empty="No member in this range.",
            ),
            html.H3("Owners"),
            table(
                ("Partition", "Owner", "From (UTC)", "Until (UTC)", "Evidence"),
                [
                    (resource(o.name, o.index, 90), visible(s.kind, 80), _edge(s.earliest, s.start),
                     _edge(s.end, s.latest), s.evidence)
                    for o in timeline.owned[:60]
                    for s in o.spans[:20]
                ],
                empty="Nobody owned anything in this range.",
            ),
        ]
    )  # fmt: skip


def _pin(state: State, label: str) -> Component:
    """Return a link that moves the lane to the top, or back to its place."""
    is_pinned = label in state.lanes
    kept = tuple(each for each in state.lanes if each != label)
    href = state.href(
        "group", cluster=state.cluster, group=state.group, gid=state.gid, lanes=kept if is_pinned else (label, *kept)
    )
    return dcc.Link("Unpin" if is_pinned else "Pin", href=href, title=f"Lane of {visible(label, 80)}")


def _edge(first: int, last: int) -> str:
    return instant(first) if first == last else span(instant(first), instant(last)[11:])


def _event(e: Row) -> tuple[str, ...]:
    glyph = GLYPHS[GroupEventKind(e["kind"])]
    member = member_label(e["member_id"], e["group_instance_id"], e["client_id"]) if e["member_id"] else None
    return (
        instant(e["event_at"]), f"{glyph.character} {glyph.word}", visible(member, 80), host(e["client_host"]),
        e["evidence"], visible(e["detail"], 160),
    )  # fmt: skip


def _generations(found: Rows, inside: list[Row], hrefs: dict[tuple[int, int], str], known: dict[str, str]) -> Component:
    rows = [
        {
            "key": f"{g['incarnation']}-{g['generation_id']}",
            "number": g["generation_id"],
            "href": hrefs[g["incarnation"], g["generation_id"]],
            "joined": g["joined_at"],
            "joined_text": instant(g["joined_at"]),
            "trigger": "; ".join(filter(None, (sentences.trigger_with_verb_first(g, known), sentences.folded(g)))),
            "evidence": g["trigger_evidence"],
            "ms": g["rebalance_ms"] if g["rebalance_ms"] is not None else g["rebalance_ms_max"],
            "took": sentences.rebalance_length(g),
            "members": g["member_count"],
            "moved": g["resources_moved"],
            "moved_text": sentences.resources_moved(g),
            "lost": g["lost"],
            "lost_text": sentences.generation_loss(g),
            "proof": proof(g),
        }
        for g in inside
    ]
    term = sentences.term(inside[0]) if inside else "generation"
    more = " The newest are listed." if found.is_capped else ""
    body: Component = (
        grid("generations", COLUMNS, rows, min(40 + 36 * max(2, len(rows)), 620))
        if rows
        else html.P(f"No {term} in this range.", className="quiet")
    )
    longest = max((g["rebalance_ms_max"] or 0 for g in inside), default=0)
    text = f"{count(sentences.window_generations(inside), term)}, newest first.{more}"
    if longest:
        text += f" None took longer than {duration(longest)}."
    return html.Section([html.H2(f"{term.capitalize()}s"), html.P(text, className="summary"), body], className="panel")
