"""Reassignments: which partitions move between brokers, their progress, and the groups that rebalanced meanwhile."""

from __future__ import annotations

from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.flags import flagged
from dashboards.figures.progress import LINES_SHOWN, progress_figure
from dashboards.lake.lake import Row, Rows
from dashboards.queries.store import Store
from dashboards.text import ABSENT, duration, instant, visible
from dashboards.urlstate import ALL, State, Window, window
from dashboards.views.components import Cell, empty, evidence_mark, marks_table, paging_links, panel, table, tile
from dashboards.views.ranges import ranges
from schemas.states import ReassignmentPhase, ReassignmentState
from schemas.written import count, percent, size

STEPS = {
    ReassignmentPhase.INITIAL: "initial",
    ReassignmentPhase.REPLICAS_ADDED: "replicas added",
    ReassignmentPhase.CAUGHT_UP: "caught up",
    ReassignmentPhase.LEADER_MOVED: "leader moved",
    ReassignmentPhase.ISR_SHRUNK: "ISR shrunk",
    ReassignmentPhase.COMPLETED: "completed",
}
"""The six steps of a reassignment; KRaft takes the last three at once."""

HEAD = (
    "Partition", "Cluster", "Replicas", "State", "Step", "Bytes", "Speed", "Estimated end (UTC)", "Started (UTC)",
    "Took", "Rebalances meanwhile", "Evidence",
)  # fmt: skip
GROUPS_NAMED = 3
MOVES_LISTED = 50


def render(store: Store, state: State, now: int) -> list[Component]:
    seen = store.span()
    view, shown = window(state, now, (seen.first_at, seen.last_at) if seen else None)
    head = html.Div([html.H1("Reassignments"), ranges(state, shown, view)], className="head")
    found = store.reassignments(view)
    if not found.rows:
        return [head, _none(store, state)]
    state = replace(state, skip=state.skip if state.skip < len(found.rows) else 0)
    listed = found.rows[state.skip : state.skip + MOVES_LISTED]
    capped = f"The {len(found.rows):,} newest are listed. " if found.is_capped else ""
    return [
        head,
        _tiles(found.rows),
        *_curve(store.progress(view), store.marks(view), view),
        html.Section(
            [
                html.H2("Partitions"),
                html.P(
                    f"{capped}Running ones first. Polls bound start and end; the controller's log has exact times.",
                    className="summary",
                ),
                table(HEAD, [_cells(state, row) for row in listed]),
                paging_links(state, "reassignments", len(listed), MOVES_LISTED, len(found.rows)),
            ],
            className="panel",
        ),
    ]


def _curve(samples: Rows, marks: list[Row], view: Window) -> list[Component]:
    if not samples.rows:
        return []
    figure, moves = progress_figure(samples.rows, view)
    flagged(figure, marks, first=view.start, last=view.end)
    text = "Size of the added replicas against the leader's, as polls saw it."
    if moves > LINES_SHOWN:
        text += f" The last {LINES_SHOWN} of {moves:,} to begin are drawn."
    rows = [
        (f"{visible(r['topic'], 60)}-{r['partition']}", instant(r["observed_at"]), percent(r["progress"]), _bytes(r))
        for r in samples.rows[:100]
    ]
    listed = table(("Partition", "At (UTC)", "Progress", "Bytes"), rows)
    body = html.Div([listed, html.H3("Marks"), marks_table(marks)])
    return [panel("Progress", text, figure, name="progress", table=body)]


def _none(store: Store, state: State) -> Component:
    if "reassignments" not in store.versions():
        return empty("missing", "Nothing here yet", "No poll and no controller's log has been read yet.")
    return empty(
        "nothing",
        "No reassignment seen in this range",
        "Reassignments are seen only with a poll (“regroup poll”, or “up”) or the controller's log.",
        dcc.Link("Show all data", href=state.href("reassignments", from_=ALL, to=""), className="button"),
    )


def _tiles(rows: list[Row]) -> Component:
    running = [row for row in rows if row["completed_at"] is None]
    stalled = sum(row["state"] == ReassignmentState.STALLED for row in running)
    known = [row for row in running if row["bytes_total"] is not None and row["bytes_done"] is not None]
    left = sum(row["bytes_total"] - row["bytes_done"] for row in known)
    note = f"size of {len(running) - len(known):,} unknown" if len(known) < len(running) else "over all running ones"
    return html.Div(
        [
            tile("Running, as last seen", f"{len(running):,}", f"{stalled:,} of them stalled", loud=stalled > 0),
            tile("Bytes to move", size(left) if known else ABSENT, note if running else "none running"),
            tile("Reassignments", f"{len(rows):,}", "in this range"),
        ],
        className="tiles",
    )


def _cells(state: State, row: Row) -> list[Cell]:
    took = row["completed_at"] - row["started_at"] if row["completed_at"] else None
    return [
        f"{visible(row['topic'], 60)}-{row['partition']}",
        visible(row["cluster"], 40),
        f"{_brokers(row['original_replicas'])} → {_brokers(row['target_replicas'])}",
        _state(row),
        f"{STEPS[ReassignmentPhase(row['phase'])]} ({list(ReassignmentPhase).index(row['phase']) + 1} of 6)",
        _bytes(row),
        ABSENT if row["bytes_per_second"] is None else f"{size(row['bytes_per_second'])}/s",
        instant(row["eta_at"])[:19],
        _bounded_start(row),
        duration(took),
        _groups(state, row),
        evidence_mark(row["evidence"]),
    ]


def _state(row: Row) -> str:
    if row["stalled_since_at"] is not None:
        return f"stalled for {duration(row['last_observed_at'] - row['stalled_since_at'])}"
    return visible(row["state"], 20) if row["state"] else "ended, outcome not observed"


def _bytes(row: Row) -> str:
    if row["bytes_done"] is None or row["bytes_total"] is None:
        return "not known"
    return f"{size(row['bytes_done'])} of {size(row['bytes_total'])} ({percent(row['progress'])})"


def _bounded_start(row: Row) -> str:
    started, earliest = row["started_at"], row["started_at_earliest"]
    if earliest == started:
        return instant(started)[:23]
    if earliest is None:
        return f"before {instant(started)[:19]}"
    return f"{instant(started)[:19]} or up to {duration(started - earliest)} before"


def _groups(state: State, row: Row) -> Component:
    links: list[Component | str] = [f"{count(row['rebalances'], 'rebalance')} "] if row["rebalances"] else [ABSENT]
    for group in row["groups"][:GROUPS_NAMED]:
        href = state.href("group", cluster=row["cluster"], group=group)
        links += [dcc.Link(visible(group, 40), href=href), " "]
    if len(row["groups"]) > GROUPS_NAMED:
        links.append(f"and {len(row['groups']) - GROUPS_NAMED:,} more groups")
    return html.Span(links)


def _brokers(listed: list[int] | None) -> str:
    return "not known" if listed is None else ", ".join(map(str, listed))
