"""Storms: rebalances that deploys and scaling do not explain, the groups hit, the costs, and what stands out."""

from __future__ import annotations

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.flags import flagged
from dashboards.figures.storms import STORMS_SHOWN, storms_figure
from dashboards.lake.lake import Row
from dashboards.pages import storm
from dashboards.queries.store import KnownSpan, Store
from dashboards.text import ABSENT, amount, duration, instant, visible
from dashboards.urlstate import ALL, State, Window, window
from dashboards.views import sentences
from dashboards.views.components import Cell, empty, evidence_mark, marks_table, panel, table, tile
from dashboards.views.ranges import ranges
from dashboards.views.storm_words import is_masked, storm_sentence, title
from dashboards.zone import zone
from schemas import loss_interval
from schemas.written import capitalized, count

HEAD = (
    "Storm", "Cluster", "Began (UTC)", "Lasted", "Groups", "Rebalances", "Lost resource-seconds", "Suspected cause",
    "Score", "Evidence",
)  # fmt: skip


def render(store: Store, state: State, now: int) -> list[Component]:
    """Return all storms of the range, or the one in the address."""
    seen = store.span()
    if state.storm:
        return storm.render(store, state, now)
    view, shown = window(state, now, (seen.first_at, seen.last_at) if seen else None)
    head = html.Div([html.H1("Storms"), ranges(state, shown, view)], className="head")
    found = store.storms(view)
    if not found.rows:
        return [head, _none(store, state, view, seen)]
    newest = seen.until if seen else {}
    # An open storm is drawn to the newest record of its cluster; nothing is known after that.
    rows = [r | {"until": max(newest.get(r["cluster"], 0), r["started_at"], r["detected_at"])} for r in found.rows]
    capped = "Only the first of them are listed. " if found.is_capped else ""
    return [
        head,
        html.P(capped + _summary(rows, is_capped=found.is_capped), className="sentence"),
        _tiles(rows, is_capped=found.is_capped),
        _overview(store, state, rows, view),
        html.Section(
            [
                html.H2("List"),
                html.P("Open storms first, then by cost.", className="summary"),
                table(HEAD, [_cells(state, row) for row in rows]),
            ],
            className="panel",
        ),
    ]


def _number(rows: list[Row], *, is_capped: bool) -> str:
    return f"{'at least ' if is_capped else ''}{count(len(rows), 'storm')}"


def _summary(rows: list[Row], *, is_capped: bool) -> str:
    """Return the number of storms, and a sentence about the worst one."""
    running = sum(row["is_open"] for row in rows)
    number = capitalized(_number(rows, is_capped=is_capped))
    first = f"{number} in this range, {'none' if not running else f'{running:,}'} open as last seen."
    return f"{first} {title(rows[0])}: {storm_sentence(rows[0], rows[0]['until'])}"


def _tiles(rows: list[Row], *, is_capped: bool) -> Component:
    running = sum(row["is_open"] for row in rows)
    hit = {(row["cluster"], group) for row in rows for group in row["group_ids"] or ()}
    worst = max(rows, key=lambda row: row["lost_resource_seconds"] or 0)
    limits = loss_interval.of_row(worst)
    return html.Div(
        [
            tile("Open, as last seen", f"{running:,}", f"of {_number(rows, is_capped=is_capped)}", loud=running > 0),
            tile("Groups hit", f"{len(hit):,}", "by those listed" if is_capped else "in this range"),
            tile("Costliest", amount(worst["lost_resource_seconds"]), f"resource-seconds lost: {limits}"),
        ],
        className="tiles",
    )


def _overview(store: Store, state: State, rows: list[Row], view: Window) -> Component:
    marks = store.marks(view)
    hrefs = [_link(state, row) for row in rows]
    figure = storms_figure(rows, [title(row) for row in rows], hrefs, view)
    flagged(figure, marks, first=view.start, last=view.end)
    more = f" The first {STORMS_SHOWN} are drawn." if len(rows) > STORMS_SHOWN else ""
    text = f"◇ detected, ▶ open as last seen.{more} Select one to open it."
    return panel("Storms over time", text, figure, name="storms", table=marks_table(marks))


def _none(store: Store, state: State, view: Window, seen: KnownSpan | None) -> Component:
    """Return a notice that separates three cases: not analyzed, not observed, nothing happened."""
    if "storms" not in store.versions():
        return empty("missing", "Nothing here yet", "No analysis has run yet (“regroup analyze”, or “up”).")
    everything = dcc.Link("Show all data", href=state.href("storms", from_=ALL, to=""), className="button")
    if seen is None or not seen.reaches(view):
        when = (
            ""
            if seen is None
            else f" Records are of {instant(seen.first_at)[:19]} to {instant(seen.last_at)[:19]} {zone()}."
        )
        return empty("unobserved", "Not observed in this range", f"No record lies in this range.{when}", everything)
    number = store.totals(view)["rebalances"]
    text = f"{count(number, 'rebalance')} in this range, explained by deploys, scaling and each group's usual rate."
    return empty("nothing", "No storm", text if number else "No group rebalanced in this range.", everything)


def _link(state: State, row: Row) -> str:
    return state.href("storms", storm=row["storm_id"])


def _cells(state: State, row: Row) -> list[Cell]:
    lasted = duration(max(0, (row["ended_at"] or row["until"]) - row["started_at"]))
    return [
        dcc.Link(title(row), href=_link(state, row)),
        visible(row["cluster"], 40),
        instant(row["started_at"])[:19],
        f"open for {lasted}" if row["is_open"] else lasted,
        row["groups"],
        ABSENT if is_masked(row) else row["rebalances"],
        loss_interval.of_row(row),
        sentences.cause(row["suspected_cause"]),
        ABSENT if is_masked(row) else f"{row['score'] or 0:.2f}",
        evidence_mark(row["evidence"]),
    ]
