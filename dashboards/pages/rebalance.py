"""Rebalance: one generation in detail: its cause, the slowest member, what moved and the cost."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.waterfall import RESOURCES_SHOWN, SCALE, began, marked_waterfall, stopped
from dashboards.lake.lake import Row
from dashboards.queries.lag import lag_sentence
from dashboards.queries.measurements import measured_around
from dashboards.queries.store import Rebalance, Store
from dashboards.text import ABSENT, between, duration, instant, member_label, resource, span, visible
from dashboards.urlstate import State, Window
from dashboards.views import log_sources, sentences
from dashboards.views.clients.measured import HEAD, measured_cells, measured_text
from dashboards.views.components import (
    Cell,
    aria,
    document_link,
    empty,
    evidence_mark,
    facts,
    graded,
    legend,
    marks_table,
    panel,
    table,
)
from dashboards.views.marks import time_since_mark
from dashboards.views.ranges import drawn, keyed, part
from dashboards.views.rebalance_facts import (
    AFTER_MS,
    BEFORE_MS,
    around,
    cause_facts,
    cost_facts,
    gone_cells,
    member_cells,
    member_head,
    members_sentence,
    start_of,
    window_text,
)
from dashboards.views.verdicts import verdict_panel, verdict_sentence
from dashboards.zone import zone
from schemas.written import count

TABLE_ROWS = 200


def render(store: Store, state: State, now: int) -> list[Component]:  # noqa: ARG001 - every page has this shape
    group = store.group_by_hash(state.cluster, state.gid) if state.gid else state.group
    found = None
    if group is not None and state.generation is not None:
        found = store.rebalance(state.cluster, group, state.incarnation, state.generation)
    if found is None or group is None:
        text = (
            "No such generation of this group has been observed. It may never have completed."
            if store.versions()
            else "The warehouse has no tables. This page updates when data arrives."
        )
        back = dcc.Link("All groups", href=state.href("fleet"), className="button")
        return [_head(state, group or "", None, None), empty("missing", "Nothing here yet", text, back)]
    more = len(found.stopped) > RESOURCES_SHOWN or found.stalls.is_capped
    came = "rejoined" if sentences.term(found.generation) == "generation" else "reconciled"
    marks = store.marks(around(found.generation), state.cluster, [group])
    figure, whole = marked_waterfall(found, marks)
    origin = began(found.generation)
    judged = store.verdict(state.cluster, group, state.incarnation, found.generation["generation_id"])
    episode = found.episode
    of_episode = store.episode_verdicts(episode) if episode is not None and episode["generations"] > 1 else []
    near = Window(whole.start - BEFORE_MS, whole.end + AFTER_MS, is_live=False)
    view = drawn(state, whole)
    figure["layout"]["xaxis"]["range"] = [(view.start - origin) * SCALE, (view.end - origin) * SCALE]
    lines, protocol = store.lines(state.cluster, group, near), found.generation["group_protocol"]
    note = f" The {RESOURCES_SHOWN} with the longest stops are drawn." if more else ""
    return [
        _head(state, group, found, whole),
        html.Div([*filter(None, [verdict_sentence(judged)])]),
        html.P(
            sentences.rebalance(found)
            + time_since_mark(marks, *start_of(found.generation))
            + lag_sentence(store.behind(state.cluster, group, near), near.start, near.end),
            className="sentence",
        ),
        html.Div([*filter(None, [verdict_panel(judged, of_episode, lines, protocol)])]),
        panel(
            "Anatomy",
            f"Seconds since {instant(origin)} {zone()}.{note} ▲ {came}, ◇ first commit.",
            figure,
            legend(styles=("stopped", "assigning", "partial")),
            name="rebalance",
            table=html.Div([_phases(found), html.H3("Marks"), marks_table(marks)]),
        ),
        html.Div([_why(found), _cost(found)], className="columns"),
        _moves(found),
        _members(found),
        html.Div(_measured(measured_around(store.lake, found), found)),
        log_sources.each_line(store.lines(state.cluster, group, whole)),
    ]


def _head(state: State, group: str, found: Rebalance | None, whole: Window | None) -> Component:
    here = {"cluster": state.cluster, "group": group}
    steps: list[Component] = []
    for row, word, key in ((found.previous, "previous", ","), (found.following, "next", ".")) if found else ():
        if row is not None:
            href = state.href("rebalance", **here, incarnation=row["incarnation"], generation=row["generation_id"])
            text = f"← {word}" if word == "previous" else f"{word} →"
            link = dcc.Link(text, href=href, className="button")
            steps.append(html.Span(link, title=f"({key})", **keyed(key)))
    if found:
        steps += [_before_and_after(state, here, found.generation), *_documents(state, here, found)]
    title = f"Rebalance to {sentences.numbered(found.generation)}" if found else "Rebalance"
    return html.Div(
        [
            html.Div(
                [
                    html.P(
                        [
                            dcc.Link("Fleet", href=state.href("fleet")), " / ", visible(state.cluster, 60), " / ",
                            dcc.Link(visible(group, 120), href=state.href("group", **here)),
                        ],
                        className="crumbs",
                    ),
                    html.H1(title),
                    html.P(_about(found) if found else "", className="about quiet"),
                ]
            ),
            html.Nav(steps, className="steps", **aria("neighbouring rebalances, and the incident document")),
            part(state, whole) if whole is not None else None,
        ],
        className="head",
    )  # fmt: skip


def _before_and_after(state: State, here: dict[str, str], g: Row) -> Component:
    """Return a link to the group just before the rebalance and just after it, side by side."""
    after = g["completed_at"] if g["completed_at"] is not None else g["joined_at"]
    nearby = around(g)
    href = state.href(
        "group", **here, from_=nearby.start, to=nearby.end, at=after + 1, against=max(0, start_of(g)[0] - 1)
    )
    return dcc.Link("Before and after", href=href, className="button")


def _documents(state: State, here: dict[str, str], found: Rebalance) -> list[Component]:
    """Return links to the document of the rebalance, and of its episode if that has several."""
    g, episode = found.generation, found.episode
    key = {**here, "incarnation": g["incarnation"], "generation": g["generation_id"]}
    links = [document_link(state, "Incident document", **key)]
    if episode is not None and episode["generations"] > 1:
        links.append(document_link(state, "of the episode", **key, episode=1))
    return links


def _about(found: Rebalance) -> str:
    g = found.generation
    words = (g["group_protocol"], visible(g["assignor"], 60), g["rebalance_mode"], count(g["member_count"], "member"))
    return " · ".join(words)


def _why(found: Rebalance) -> Component:
    return html.Section([html.H2("Why"), facts(graded(cause_facts(found)))], className="panel")


def _cost(found: Rebalance) -> Component:
    return html.Section([html.H2("Cost"), facts(graded(cost_facts(found)))], className="panel")


def _phases(found: Rebalance) -> Component:
    g = found.generation
    start = (
        instant(g["prepared_at"])
        if g["prepared_at"] is not None
        else span(instant(g["prepared_at_earliest"]), instant(g["prepared_at_latest"])[11:])
    )
    join = duration(g["join_ms"]) if g["join_ms"] is not None else between(
        g["joined_at"] - g["prepared_at_latest"], g["joined_at"] - g["prepared_at_earliest"]
    )  # fmt: skip
    joined, synced, completed = (instant(g[name]) for name in ("joined_at", "synced_at", "completed_at"))
    is_join_recorded = g["sync_ms"] is not None or g["synced_at"] is None
    grade = "observed" if is_join_recorded else "bounded"
    rows: list[Sequence[Cell]] = [("assign", joined, synced, duration(g["sync_ms"]), grade)]
    if sentences.term(g) == "generation":
        rows.insert(0, ("prepare", start, joined, join, g["evidence"]))
    elif g["completed_at"] is not None and g["synced_at"] is not None:
        rows.append(("reconcile", synced, completed, duration(g["completed_at"] - g["synced_at"]), "observed"))
    rows.append(("whole", start, completed, sentences.rebalance_length(g), g["evidence"]))
    return table(("Phase", "From (UTC)", "To (UTC)", "Length", "Evidence"), rows)


def _moves(found: Rebalance) -> Component:
    known = sentences.names(found.named)
    rows = [
        (
            resource(s["name"], s["index"], 90),
            _owner(s["from_member_id"], known),
            _owner(s["to_member_id"], known),
            stopped(s),
            window_text(s["stopped_at_earliest"], s["stopped_at_latest"]),
            window_text(s["resumed_at_earliest"], s["resumed_at_latest"]),
            _first_commit(s),
            s["cause"].replace("_", " "),
            evidence_mark(s["evidence"]),
        )
        for s in found.stalls.rows[:TABLE_ROWS]
    ]  # fmt: skip
    word = sentences.unit(found.generation["group_type"])
    summary = f"{count(len(found.stalls.rows), word)} moved or stopped."
    if len(found.stalls.rows) > TABLE_ROWS:
        summary += f" The first {TABLE_ROWS} are listed."
    head = (
        word.capitalize(),
        "From",
        "To",
        "Stopped",
        "Stopped at (UTC)",
        "Resumed at (UTC)",
        "First commit",
        "Cause",
        "Evidence",
    )
    body = table(head, rows, empty=f"No {word} stopped.")
    return html.Section([html.H2("What moved"), html.P(summary, className="summary"), body], className="panel")


def _measured(rows: Sequence[Row], found: Rebalance) -> list[Component]:
    """Return the panel with what the members measured themselves; nothing if none pushed."""
    if not rows:
        return []
    text = measured_text(rows, found.everybody)
    body = table(HEAD, [measured_cells(row) for row in rows[:TABLE_ROWS]])
    name = html.H2("What the members measured")
    return [html.Section([name, html.P(text, className="summary"), body], className="panel")]


def _owner(member_id: str | None, known: dict[str, str]) -> str:
    if member_id is None:
        return "nobody yet"
    return known.get(member_id, visible(member_label(member_id), 60))


def _first_commit(s: Row) -> str:
    if s["first_commit_at"] is None:
        return ABSENT
    return f"{instant(s['first_commit_at'])[11:]} at {s['first_committed_offset']}"


def _members(found: Rebalance) -> Component:
    g = found.generation
    rows = [*gone_cells(found), *(member_cells(g, m) for m in found.members)][:TABLE_ROWS]
    body = table(member_head(g), rows, empty="The group was empty.")
    return html.Section([html.H2("Members"), html.P(members_sentence(g), className="summary"), body], className="panel")
