"""Fleet: which groups rebalance, what it cost, worst first."""

from __future__ import annotations

from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.components import empty, grid, heat_legend, links, marks_table, panel, table, tile
from dashboards.figures.flags import flagged
from dashboards.figures.heatmap import BINS, heatmap
from dashboards.lake import Row, Rows
from dashboards.ranges import ranges
from dashboards.store import Span, Store
from dashboards.text import ABSENT, amount, between, bounded, clock, count, duration, instant, span, visible
from dashboards.theme import LOOKS, look_of
from dashboards.urlstate import ALL, State, Window, window
from dashboards.zone import zone

HEATMAP_ROWS = 30

COLUMNS: list[dict[str, Any]] = [
    {
        "headerName": "Group",
        "field": "group",
        "minWidth": 190,
        "flex": 3,
        "cellRenderer": "RegroupLink",
        "pinned": None,
    },
    {"headerName": "Cluster", "field": "cluster", "minWidth": 90, "flex": 1},
    {"headerName": "State now", "field": "state", "minWidth": 150, "flex": 2, "cellRenderer": "RegroupState"},
    {"headerName": "Rebalances", "field": "rebalances", "minWidth": 110, "flex": 1, "type": "rightAligned"},
    {
        "headerName": "Lost partition-seconds",
        "field": "lost",
        "minWidth": 180,
        "flex": 2,
        "type": "rightAligned",
        "cellRenderer": "RegroupText",
        "cellRendererParams": {"text": "lost_text"},
    },
    {
        "headerName": "p95 rebalance",
        "field": "p95",
        "minWidth": 150,
        "flex": 2,
        "type": "rightAligned",
        "cellRenderer": "RegroupText",
        "cellRendererParams": {"text": "p95_text"},
    },
    {
        "headerName": "Last change (UTC)",
        "field": "changed",
        "minWidth": 170,
        "flex": 2,
        "cellRenderer": "RegroupText",
        "cellRendererParams": {"text": "changed_text"},
    },
]


def render(store: Store, state: State, now: int) -> list[Component]:
    seen = store.span()
    if seen is None:
        return [_head(state, "", None), _nothing_yet(store)]
    view, shown = window(state, now, (seen.first_at, seen.last_at))
    found = store.fleet(view, state.q)
    parts = [_head(state, shown, view), _tiles(store.totals(view), seen, view, now)]
    if not found.rows:
        return [*parts, _no_rows(state)]
    unobserved = html.Div([_unobserved(state, seen)] if seen.last_at < view.start else [])
    return [*parts, unobserved, _heat(store, state, found.rows, view, seen), _groups(state, found, view, seen.last_at)]


def _head(state: State, shown: str, view: Window | None) -> Component:
    return html.Div(
        [
            html.H1("Fleet"),
            ranges(state, shown, view),
        ],
        className="head",
    )  # fmt: skip


def _nothing_yet(store: Store) -> Component:
    if store.versions():
        return empty(
            "missing",
            "Nothing here yet",
            "The tables are there, but no group has been observed. This page fills by itself.",
        )
    return empty(
        "missing",
        "Nothing here yet",
        "The warehouse has no tables. Start “regroup up” or “regroup replay”; this page then fills by itself.",
    )


def _no_rows(state: State) -> Component:
    if state.q:
        return empty(
            "filtered",
            "Nothing matches the filter",
            f"No group's id contains “{visible(state.q, 80)}”.",
            dcc.Link("Clear the filter", href=state.href("fleet"), className="button"),
        )
    return empty(
        "unobserved",
        "Not observed in this range",
        "No group was known before the end of this range.",
        dcc.Link("Show all data", href=state.href("fleet", from_=ALL, to=""), className="button"),
    )


def _unobserved(state: State, seen: Span) -> Component:
    return empty(
        "unobserved",
        "Not observed in this range",
        f"The newest record is of {instant(seen.last_at)[:19]} {zone()}, before this range begins.",
        dcc.Link("Show all data", href=state.href("fleet", from_=ALL, to=""), className="button"),
    )


def _tiles(totals: Row, seen: Span, view: Window, now: int) -> Component:
    limits = span(amount(totals["lost_min"]), amount(totals["lost_max"])) if totals["lost_max"] else "none"
    is_seen = seen.last_at >= view.start
    not_known = f"state of {seen.unknown:,} not observed" if seen.unknown else "every state known"
    return html.Div(
        [
            tile("Groups seen", f"{seen.groups:,}", not_known),
            tile(
                "Rebalancing now",
                f"{seen.rebalancing:,}",
                f"as of {clock(seen.last_at)} {zone()}",
                loud=seen.rebalancing > 0,
            ),
            tile("Partition-seconds lost", amount(totals["lost"]), f"bounds {limits}")
            if is_seen
            else tile("Partition-seconds lost", ABSENT, "not observed"),
            tile("Rebalances", f"{totals['rebalances']:,}", f"in {duration(view.width)}")
            if is_seen
            else tile("Rebalances", ABSENT, "not observed"),
            tile(
                "Newest record", f"{duration(max(0, now - seen.last_at))} ago", f"{instant(seen.last_at)[:19]} {zone()}"
            ),
        ],
        className="tiles",
    )


def _heat(store: Store, state: State, groups: list[Row], view: Window, seen: Span) -> Component:
    worst = groups[:HEATMAP_ROWS]
    cells = store.cells(view, BINS, [(g["cluster"], g["group_id"]) for g in worst])
    total = sum(c["rebalances"] for c in cells)
    summary = f"{count(total, 'rebalance')} in {count(len({(c['cluster'], c['group_id']) for c in cells}), 'group')}"
    if len(groups) > len(worst):
        summary += f"; the {len(worst)} worst groups are drawn"
    if not total:
        is_seen = seen.last_at >= view.start
        summary = (
            "Nothing happened: no rebalance in this range"
            if is_seen
            else "Not observed: nothing is known of this range"
        )
    width = max(1, -(-view.width // BINS))
    loud = sorted(cells, key=lambda c: (-c["rebalances"], c["bin"]))[:200]
    rows = [
        (visible(c["group_id"], 80), f"{instant(view.start + c['bin'] * width)[:19]} {zone()}", int(c["rebalances"]))
        for c in loud
    ]
    marks = store.marks(view)
    figure = heatmap(worst, cells, view, seen.last_at)
    flagged(figure, marks, first=view.start, last=view.end)
    return panel(
        "Rebalances over time",
        f"{summary}. One column is {duration(width)}; select a row to open its group.",
        figure,
        heat_legend(),
        links("fleet", [_link(state, g) for g in worst]),
        name="fleet",
        table=html.Div(
            [
                table(("Group", "From", "Rebalances"), rows, empty="No rebalance in this range."),
                html.H3("Marks"),
                marks_table(marks),
            ]
        ),
    )


def _groups(state: State, found: Rows, view: Window, observed_until: int) -> Component:
    rows = [_row(state, g, observed_until, is_seen=observed_until >= view.start) for g in found.rows]
    more = f"The {len(rows):,} worst are listed: search for others. " if found.is_capped else ""
    return html.Section(
        [
            html.H2("Groups"),
            html.P(
                f"{more}{count(len(rows), 'group')}, worst first, over {duration(view.width)}.", className="summary"
            ),
            grid("groups", COLUMNS, rows, min(40 + 36 * max(2, len(rows)), 620)),
        ],
        className="panel",
    )


def _link(state: State, g: Row) -> str:
    return state.href("group", cluster=g["cluster"], group=g["group_id"])


def _row(state: State, g: Row, observed_until: int, *, is_seen: bool) -> Row:
    look = look_of(g["state"])
    is_known = (look != "unknown" and is_seen) or g["rebalances"] > 0
    since = g["open_rebalance_since_at"]
    lasting = "" if since is None else f" for {duration(max(0, observed_until - since))}"
    changed = max((t for t in (g["state_since_at"], g["last_rebalance_at"]) if t is not None), default=None)
    return {
        "key": f"{g['cluster']}\n{g['group_id']}",
        "group": visible(g["group_id"], 120),
        "href": _link(state, g),
        "cluster": visible(g["cluster"], 60),
        "state": LOOKS[look].word + lasting,
        "look": look,
        "kafka_state": visible(g["state"], 40),
        "rebalances": g["rebalances"] if is_known else None,
        "lost": g["lost"] if is_known else None,
        "lost_text": _lost(g) if is_known else "not observed",
        "p95": g["p95_max"],
        "p95_text": between(g["p95_min"], g["p95_max"]),
        "changed": changed,
        "changed_text": instant(changed)[:19],
    }


def _lost(g: Row) -> str:
    return bounded(g["lost"], g["lost_min"], g["lost_max"]) if g["lost_max"] else "none"
