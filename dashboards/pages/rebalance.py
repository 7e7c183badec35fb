"""Rebalance: one generation in detail: its cause, the slowest member, what moved and the cost."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.flags import flagged
from dashboards.figures.waterfall import RESOURCES_SHOWN, SCALE, began, stopped, waterfall
from dashboards.lake.lake import Row
from dashboards.queries.lag import lag_sentence
from dashboards.queries.store import Rebalance, Store
from dashboards.text import ABSENT, amount, between, duration, host, instant, member_label, resource, span, visible
from dashboards.urlstate import State, Window
from dashboards.views import log_sources, sentences
from dashboards.views.client_libraries import library
from dashboards.views.components import Cell, aria, empty, evidence_mark, facts, legend, marks_table, panel, table
from dashboards.views.marks import NEAR_MS, time_since_mark
from dashboards.views.ranges import drawn, keyed, part
from dashboards.views.resume_position import resumed_from
from dashboards.views.timeline import proof
from dashboards.views.verdicts import verdict_panel, verdict_sentence
from dashboards.zone import zone
from schemas import loss_interval
from schemas.states import StallCause
from schemas.written import count

TABLE_ROWS = 200
BEFORE_MS, AFTER_MS = 60_000, 120_000
"""Margins around a rebalance within which the poll keeps end offsets."""


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
    marks = store.marks(_around(found.generation), state.cluster, [group])
    figure = waterfall(found)
    origin = began(found.generation)
    first, last = (round(origin + x / SCALE) for x in figure["layout"]["xaxis"]["range"])
    flagged(figure, marks, first=first, last=last, origin=origin, scale=SCALE)
    whole = Window(first, last, is_live=False)
    judged = store.verdict(state.cluster, group, state.incarnation, found.generation["generation_id"])
    episode = found.episode
    of_episode = store.episode_verdicts(episode) if episode is not None and episode["generations"] > 1 else []
    near = Window(first - BEFORE_MS, last + AFTER_MS, is_live=False)
    view = drawn(state, whole)
    figure["layout"]["xaxis"]["range"] = [(view.start - origin) * SCALE, (view.end - origin) * SCALE]
    note = f" The {RESOURCES_SHOWN} with the longest stops are drawn." if more else ""
    return [
        _head(state, group, found, whole),
        html.Div([*filter(None, [verdict_sentence(judged)])]),
        html.P(
            sentences.rebalance(found)
            + time_since_mark(marks, *_start(found.generation))
            + lag_sentence(store.behind(state.cluster, group, near), near.start, near.end),
            className="sentence",
        ),
        html.Div([*filter(None, [verdict_panel(judged, of_episode, store.lines(state.cluster, group, near))])]),
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
        log_sources.each_line(store.lines(state.cluster, group, whole)),
    ]


def _start(g: Row) -> tuple[int, int]:
    """Return the earliest and latest possible start."""
    latest = began(g)
    return (latest, latest) if g["prepared_at"] is not None else (min(g["prepared_at_earliest"], latest), latest)


def _around(g: Row) -> Window:
    """Return the window within which marks are near."""
    end = g["completed_at"] if g["completed_at"] is not None else g["joined_at"]
    return Window(_start(g)[0] - NEAR_MS, end + NEAR_MS, is_live=False)


def _head(state: State, group: str, found: Rebalance | None, whole: Window | None) -> Component:
    here = {"cluster": state.cluster, "group": group}
    steps = []
    for row, word, key in ((found.previous, "previous", ","), (found.following, "next", ".")) if found else ():
        if row is not None:
            href = state.href("rebalance", **here, incarnation=row["incarnation"], generation=row["generation_id"])
            text = f"← {word}" if word == "previous" else f"{word} →"
            link = dcc.Link(text, href=href, className="button")
            steps.append(html.Span(link, title=f"({key})", **keyed(key)))
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
            html.Nav(steps, className="steps", **aria("neighbouring rebalances")),
            part(state, whole) if whole is not None else None,
        ],
        className="head",
    )  # fmt: skip


def _about(found: Rebalance) -> str:
    g = found.generation
    words = (g["group_protocol"], visible(g["assignor"], 60), g["rebalance_mode"], count(g["member_count"], "member"))
    return " · ".join(words)


def _why(found: Rebalance) -> Component:
    g, known = found.generation, sentences.names(found.named)
    slowest = known.get(g["slowest_member_id"], visible(g["slowest_member_id"], 120))
    waited = f"{slowest}, {duration(g['slowest_waited_ms'])}" if g["slowest_member_id"] else "not known"
    pairs: list[tuple[str, Cell]] = [
        ("Trigger", html.Span([sentences.trigger(g, known), " ", evidence_mark(g["trigger_evidence"])])),
        ("Coordinator's reason", visible(g["trigger_reason"])),
        ("Client's reason", visible(g["client_reason"])),
        ("Waited for", waited),
        ("Joined", _named(g["joined_member_ids"], known)),
        ("Gone", _named(g["left_member_ids"], known)),
        ("Skipped generations", ABSENT if g["skipped_generations"] is None else str(g["skipped_generations"])),
        ("Proof", html.Code(proof(g))),
    ]
    if folded := sentences.folded(g):
        pairs.insert(0, ("Contains", folded))
    return html.Section([html.H2("Why"), facts(pairs)], className="panel")


def _named(ids: list[str] | None, known: dict[str, str]) -> str:
    if ids is None:
        return "not known"
    shown = ", ".join(known.get(m, visible(member_label(m), 60)) for m in ids[:20])
    return (f"{shown} and {len(ids) - 20} more" if len(ids) > 20 else shown) or "nobody"


def _cost(found: Rebalance) -> Component:
    g, stalls = found.generation, found.stopped
    word = sentences.unit(g["group_type"])
    estimate, low, high = sentences.lost(stalls)
    open_ = [s for s in stalls if s["stopped_ms"] is None]
    causes: dict[str, list[Row]] = {}
    for s in stalls:
        causes.setdefault(s["cause"], []).append(s)
    pairs: list[tuple[str, Cell]] = [
        (
            f"{word.capitalize()}-seconds lost",
            loss_interval.written(estimate, low, high) if high else "none" if sentences.is_costed(g) else "not known",
        ),
        *(
            (
                f"of them {cause.replace('_', ' ')}" if cause != StallCause.NO_MEMBER else "not counted: no member",
                f"{amount(sum(s['stopped_ms'] or 0 for s in rows) / 1000)} in {count(len(rows), word)}",
            )
            for cause, rows in sorted(causes.items())
        ),
        ("Resumed", resumed_from(stalls, word)),
        ("Moved", sentences.resources_moved(g)),
        ("Took", html.Span([sentences.rebalance_length(g), " ", evidence_mark(g["evidence"])])),
    ]
    if (reason := sentences.not_costed(g)) is not None:
        pairs.append(("Left out", reason))
    if found.restarted:
        pairs.append(("Later, static restarts", sentences.cost(found.restarted, word)))
    if open_:
        pairs.append(("Without an owner", f"{count(len(open_), word)} so far"))
    if (episode := found.episode) is not None and episode["generations"] > 1:
        pairs.append(
            (
                "Part of an episode",
                _episode(episode, word, sentences.term(g)),
            )
        )
    return html.Section([html.H2("Cost"), facts(pairs)], className="panel")


def _episode(row: Row, word: str, term: str) -> str:
    lost = loss_interval.of_row(row)
    numbers = span(str(row["first_generation_id"]), str(row["last_generation_id"]))
    return f"{count(row['generations'], term)}, {numbers}, {lost} {word}-seconds lost"


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
    rows: list[Sequence[Cell]] = [("assign", joined, synced, duration(g["sync_ms"]), "observed")]
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
            _window(s["stopped_at_earliest"], s["stopped_at_latest"]),
            _window(s["resumed_at_earliest"], s["resumed_at_latest"]),
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


def _owner(member_id: str | None, known: dict[str, str]) -> str:
    if member_id is None:
        return "nobody yet"
    return known.get(member_id, visible(member_label(member_id), 60))


def _first_commit(s: Row) -> str:
    if s["first_commit_at"] is None:
        return ABSENT
    return f"{instant(s['first_commit_at'])[11:]} at {s['first_committed_offset']}"


def _window(earliest: int | None, latest: int | None) -> str:
    if earliest is None or latest is None:
        return ABSENT
    return span(instant(earliest)[11:], instant(latest)[11:])


def _reached(member: Row) -> str:
    return ABSENT if member["reconciled_at"] is None else instant(member["reconciled_at"])[11:]


def _members(found: Rebalance) -> Component:
    g = found.generation
    is_classic = sentences.term(g) == "generation"
    rows = [
        (
            visible(member_label(m["member_id"], m["group_instance_id"], m["client_id"]), 80),
            visible(m["member_id"], 90),
            host(m["client_host"], 60),
            library(m),
            "leader" if m["is_leader"] else "",
            _window(m["rejoined_at_earliest"], m["rejoined_at_latest"]) if is_classic else _reached(m),
            len(m["assigned"] or ()),
            duration(m["session_timeout_ms"]),
        )
        for m in found.members[:TABLE_ROWS]
    ]
    came = "Rejoined (UTC)" if is_classic else "Reconciled (UTC)"
    head = ("Member", "Member id", "Host", "Library", "Role", came, "Assigned", "Session timeout")
    static = f"{g['static_member_count']} of them static"
    summary = f"{count(g['member_count'], 'member')} in {sentences.numbered(g)}, {static}."
    body = table(head, rows, empty="The group was empty.")
    return html.Section([html.H2("Members"), html.P(summary, className="summary"), body], className="panel")
