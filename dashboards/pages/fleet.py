"""Fleet: the groups with their rebalances and costs, worst first."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2s
from math import inf
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.figures.flags import flagged
from dashboards.figures.heatmap import BINS, heatmap
from dashboards.freshness import is_stale
from dashboards.lake.lake import Row
from dashboards.queries.ahead import ahead
from dashboards.queries.fleet_queries import group_address
from dashboards.queries.store import ORDERS, TOTAL, KnownSpan, Store, Wanted
from dashboards.text import ABSENT, amount, between, clock, duration, instant, span, visible
from dashboards.urlstate import ALL, HEAT_BY_COUNT, LONGEST_ID, State, Window, window
from dashboards.views.components import (
    aria,
    empty,
    heat_legend,
    links,
    marks_table,
    paged_grid,
    paging_links,
    panel,
    table,
    tile,
)
from dashboards.views.patterns import lasting_list
from dashboards.views.ranges import ranges
from dashboards.views.theme import STYLES, style_of
from dashboards.views.verdicts import fleet_panel
from dashboards.zone import zone
from schemas import loss_interval
from schemas.states import GroupProtocol
from schemas.written import count

HEATMAP_ROWS = 30
NOT_OBSERVED = STYLES["unknown"].word
BLOCK_ROWS = 100
"""Rows per request, as the table is scrolled."""

MOST_ROWS = 10_000_000
MOST_LEAST = 1e15
"""Highest lower limit of a filter, beyond any number in the table."""

CONTAINS = {"filter": "agTextColumnFilter", "filterParams": {"filterOptions": ["contains"], "maxNumConditions": 1}}
AT_LEAST = {
    "filter": "agNumberColumnFilter",
    "filterParams": {"filterOptions": ["greaterThanOrEqual"], "maxNumConditions": 1},
}
COLUMNS: list[dict[str, Any]] = [
    {
        "headerName": "Group",
        "field": "group",
        "minWidth": 190,
        "flex": 3,
        "cellRenderer": "RegroupLink",
        "pinned": None,
        **CONTAINS,
    },
    {"headerName": "Cluster", "field": "cluster", "minWidth": 90, "flex": 1},
    {"headerName": "State now", "field": "state", "minWidth": 190, "flex": 2, "cellRenderer": "RegroupState"},
    {
        "headerName": "Rebalances",
        "field": "rebalances",
        "minWidth": 110,
        "flex": 1,
        "type": "rightAligned",
        "cellRenderer": "RegroupText",
        "cellRendererParams": {"text": "rebalances_text"},
        **AT_LEAST,
    },
    {
        **AT_LEAST,
        "headerName": "Lost partition-seconds",
        "field": "lost",
        "minWidth": 215,
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
    verdicts, marks = ahead(store.fleet_verdicts, view), ahead(store.marks, view)
    found = store.fleet(view, state.q, Wanted(skip=state.skip, rows=HEATMAP_ROWS))
    if state.skip and not found.rows:
        return render(store, replace(state, skip=0), now)
    parts = [_head(state, shown, view), _tiles(_totals(store, found.rows, view), seen, view, now)]
    if not found.rows:
        return [*parts, _no_rows(state, seen, view)]
    unobserved = html.Div([_unobserved(state, seen)] if seen.last_at < view.start else [])
    made_from = f"{state} {view} {sorted(store.versions().items())}"
    listed = _groups(found.rows[0]["total"], view, made_from)
    lasting = html.Div(lasting_list(store.lasting_patterns(view, state.q), state))
    judged = html.Div(fleet_panel(verdicts.result()))
    return [*parts, unobserved, judged, lasting, _heat(store, state, found.rows, view, seen, marks.result()), listed]


def _totals(store: Store, listed: list[Row], view: Window) -> Row:
    """Return the totals of all groups, not only of the listed ones."""
    if not listed:
        return store.totals(view)
    return {name: listed[0][f"all_{name}"] for name in TOTAL}


def block(store: Store, state: State, request: Any, now: int, rows: int = BLOCK_ROWS) -> dict[str, Any]:
    """Return at most `rows` of the table for a grid's request; an invalid request is treated as the first one."""
    seen = store.span()
    if seen is None:
        return {"rowData": [], "rowCount": 0}
    view, _ = window(state, now, (seen.first_at, seen.last_at))
    found = store.fleet(view, state.q, replace(wanted(request), rows=rows), has_durations=True).rows
    return {
        "rowData": [_row(state, g, seen.until.get(g["cluster"], seen.first_at), view, now) for g in found],
        "rowCount": found[0]["total"] if found else 0,
    }


def wanted(request: Any) -> Wanted:
    """Return rows, sort column and column filters from AG Grid's request."""
    request = request if isinstance(request, dict) else {}
    first, model = request.get("startRow"), request.get("filterModel")
    sorts = request.get("sortModel")
    sort = sorts[0] if isinstance(sorts, list) and sorts and isinstance(sorts[0], dict) else {}
    model = model if isinstance(model, dict) else {}
    filters = {key: each.get("filter") for key, each in model.items() if isinstance(each, dict)}
    named = filters.get("group")
    return Wanted(
        skip=int(first) if isinstance(first, int) and 0 <= first < MOST_ROWS else 0,
        rows=BLOCK_ROWS,
        order=sort["colId"] if sort.get("colId") in ORDERS else "",
        is_descending=sort.get("sort") != "asc",
        named=named[:LONGEST_ID] if isinstance(named, str) else "",
        least_rebalances=_least(filters.get("rebalances")),
        least_lost=_least(filters.get("lost")),
    )


def _least(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(min(value, MOST_LEAST)) if is_number and 0 < value < inf else 0.0


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
            "The tables are there, but no group has been observed. This page updates when data arrives.",
        )
    return empty(
        "missing",
        "Nothing here yet",
        "The warehouse has no tables. Start “regroup up” or “regroup replay”; this page then updates.",
    )


def _no_rows(state: State, seen: KnownSpan, view: Window) -> Component:
    if state.q and seen.reaches(view):
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


def _unobserved(state: State, seen: KnownSpan) -> Component:
    return empty(
        "unobserved",
        "Not observed in this range",
        f"The newest record is of {instant(seen.last_at)[:19]} {zone()}, before this range begins.",
        dcc.Link("Show all data", href=state.href("fleet", from_=ALL, to=""), className="button"),
    )


def _tiles(totals: Row, seen: KnownSpan, view: Window, now: int) -> Component:
    limits = loss_interval.limits(totals["lost_low"], totals["lost_high"]) if totals["lost_max"] else "none"
    is_seen = seen.reaches(view)
    old = [name for name, at in seen.until.items() if is_stale(at, now)]
    return html.Div(
        [
            tile("Groups seen", f"{seen.groups:,}", _states_known(seen, old)),
            _rebalancing(seen, old),
            tile("Partition-seconds lost", amount(totals["lost"]), limits)
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


def _rebalancing(seen: KnownSpan, old: list[str]) -> Component:
    """Return how many groups are rebalancing; those of clusters in `old` are not observed now."""
    last_seen = sum(seen.rebalancing.values())
    if len(old) == len(seen.until):
        return tile("Rebalancing now", ABSENT, f"not observed; {last_seen:,} when last seen")
    hidden = sum(seen.rebalancing[name] for name in old)
    note = f"as of {clock(seen.last_at)} {zone()}" + (f"; {hidden:,} more when last seen" if hidden else "")
    return tile("Rebalancing now", f"{last_seen - hidden:,}", note, loud=last_seen > hidden)


def _states_known(seen: KnownSpan, old: list[str]) -> str:
    if len(old) == len(seen.until):
        return "no state observed now"
    if old:
        return f"states of {count(len(old), 'cluster')} not observed now"
    return f"state of {seen.unknown:,} not observed" if seen.unknown else "every state known"


def _heat(store: Store, state: State, groups: list[Row], view: Window, seen: KnownSpan, marks: list[Row]) -> Component:
    worst = groups
    cells = store.cells(view, BINS, [(g["cluster"], g["group_id"]) for g in worst])
    total = sum(c["rebalances"] for c in cells)
    summary = f"{count(total, 'rebalance')} in {count(len({(c['cluster'], c['group_id']) for c in cells}), 'group')}"
    known = groups[0]["total"]
    if known > len(worst):
        drawn = span(f"{state.skip + 1:,}", f"{state.skip + len(worst):,}")
        summary += f"; groups {drawn} of {known:,}, worst first, are drawn"
    if not total:
        is_seen = seen.last_at >= view.start
        summary = (
            "Nothing happened: no rebalance in this range"
            if is_seen
            else "Not observed: nothing is known of this range"
        )
    width = max(1, -(-view.width // BINS))
    by_loss = state.heat != HEAT_BY_COUNT
    loud = sorted(cells, key=lambda c: (-(c["lost"] or 0.0) if by_loss else 0, -c["rebalances"], c["bin"]))[:100]
    rows = [
        (
            visible(c["group_id"], 80),
            f"{instant(view.start + c['bin'] * width)[:19]} {zone()}",
            int(c["rebalances"]),
            "not analyzed yet" if c["lost"] is None else amount(c["lost"]),
        )
        for c in loud
    ]
    figure = heatmap(worst, cells, view, seen.until, by_loss=by_loss)
    flagged(figure, marks, first=view.start, last=view.end)
    return panel(
        "Rebalances over time",
        f"{summary}. One column is {duration(width)}; select a row to open its group.",
        figure,
        _heat_choice(state, by_loss=by_loss),
        heat_legend(by_loss=by_loss),
        paging_links(state, "fleet", len(worst), HEATMAP_ROWS, known),
        links("fleet", [_link(state, g) for g in worst]),
        name="fleet",
        table=html.Div(
            [
                table(
                    ("Group", "From", "Rebalances", "Lost resource-seconds"), rows, empty="No rebalance in this range."
                ),
                html.H3("Marks"),
                marks_table(marks),
            ]
        ),
    )


def _heat_choice(state: State, *, by_loss: bool) -> Component:
    chosen: Any = {"aria-current": "true"}
    shown = (("Lost", "", by_loss), ("Rebalances", HEAT_BY_COUNT, not by_loss))
    links_to = [
        html.Span(
            dcc.Link(text, href=state.href("fleet", q=state.q, heat=heat)),
            className="choice",
            **(chosen if is_on else {}),
        )
        for text, heat, is_on in shown
    ]
    return html.Nav(links_to, className="choices", **aria("what the cells show"))


def _groups(known: int, view: Window, made_from: str) -> Component:
    """Return the grid, which requests its rows itself. If `data-made` changes, assets/grid.js requests them again."""
    made: Any = {"data-made": blake2s(made_from.encode(), digest_size=8).hexdigest()}
    return html.Section(
        [
            html.H2("Groups"),
            html.P(f"{count(known, 'group')}, worst first, over {duration(view.width)}.", className="summary"),
            paged_grid("groups", COLUMNS, min(40 + 36 * max(2, known), 620), BLOCK_ROWS),
        ],
        className="panel",
        **made,
    )


def _link(state: State, g: Row) -> str:
    return state.href("group", cluster=g["cluster"], **group_address(g["group_id"]))


def _row(state: State, g: Row, observed_until: int, view: Window, now: int) -> Row:
    style = style_of(g["state"], g["group_protocol"])
    is_share = g["group_protocol"] == GroupProtocol.SHARE
    is_known = (style != "unknown" and observed_until >= view.start) or g["rebalances"] > 0
    since = g["open_rebalance_since_at"]
    since_text = "" if since is None else f" for {duration(max(0, observed_until - since))}"
    shown = {"state": STYLES[style].word + since_text, "style": style, "kafka_state": visible(g["state"], 40)}
    if is_stale(observed_until, now):
        shown = {"state": NOT_OBSERVED, "style": "unknown", "kafka_state": f"last seen {visible(g['state'], 40)}"}
    changed = max((t for t in (g["state_since_at"], g["last_rebalance_at"]) if t is not None), default=None)
    return {
        "key": f"{g['cluster']}\n{g['group_id']}",
        "group": visible(g["group_id"], 120),
        "href": _link(state, g),
        "cluster": visible(g["cluster"], 60),
        **shown,
        "rebalances": g["rebalances"] if is_known else None,
        "rebalances_text": f"{g['rebalances']:,}" if is_known else None,
        "lost": g["lost"] if is_known and not is_share else None,
        "lost_text": _lost(g) if is_known and not is_share else "not observed",
        "p95": g["p95_max"],
        "p95_text": between(g["p95_min"], g["p95_max"]),
        "changed": changed,
        "changed_text": instant(changed)[:19],
    }


def _lost(g: Row) -> str:
    return loss_interval.written(g["lost"], g["lost_low"], g["lost_high"]) if g["lost_max"] else "none"
