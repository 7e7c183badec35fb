"""Deploys: what each cost against those before, how long it took, and who did not come back; or two of them."""

from __future__ import annotations

from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.pages import deploy_pair
from dashboards.queries.deploy_store import DeployStore
from dashboards.queries.store import KnownSpan, Store
from dashboards.text import amount, instant, visible
from dashboards.urlstate import ALL, State, Window, live_window, window
from dashboards.views import deploy_words as words
from dashboards.views.components import Cell, empty, evidence_mark, table, tile
from dashboards.views.ranges import ranges
from dashboards.zone import zone
from schemas import loss_interval
from schemas.written import count

DEFAULT = "now-7d"
HEAD = (
    "Began (UTC)", "Group", "Compare", "Mark", "Lost resource-seconds", "Against the deploys before", "Stable after",
    "Did not come back", "Others waited longest for", "Evidence",
)  # fmt: skip


def render(store: Store, state: State, now: int) -> list[Component]:
    """Return the deploys of the range, of all groups or of one, or the two in the address."""
    seen = store.span()
    group = store.group_by_hash(state.cluster, state.gid) if state.gid else state.group
    if seen is not None and state.deploy is not None and group is not None:
        pair = deploy_pair.render(store, state, group, seen)
        if pair is not None:
            return pair
    missing = [] if state.deploy is None else [html.P("There is no such deploy.", className="notice", role="alert")]
    view, shown = _window(state, now, seen)
    head = html.Div([html.H1("Deploys"), ranges(state, shown, view)], className="head")
    if "deploys" not in store.versions():
        text = "No analysis has run yet (“regroup analyze”, or “up”)."
        return [head, *missing, empty("missing", "Nothing here yet", text)]
    asked, is_one = DeployStore(store.lake), bool(state.cluster and group)
    found = asked.of_group(state.cluster, group or "", view) if is_one else asked.deploys(view, state.q)
    only = [html.P(["Only those of one group. ", _everything(state)], className="quiet")] if is_one else []
    if not found.rows:
        return [head, *missing, *only, _none(state, view, seen, is_one=is_one)]
    newest = seen.until if seen else {}
    capped = f"Only the newest {len(found.rows)} are listed. " if found.is_capped else ""
    return [
        head,
        *missing,
        *only,
        html.P(capped + _summary(found.rows), className="sentence"),
        _tiles(found.rows),
        html.Section(
            [
                html.H2("List"),
                html.P(
                    "Newest first. A deploy is a mark of that kind and the rebalances that follow it within 30 min, or "
                    "rebalances that a deploy caused although no mark announced it.",
                    className="summary",
                ),
                table(HEAD, [_cells(state, row, newest.get(row["cluster"], row["started_at"])) for row in found.rows]),
            ],
            className="panel",
        ),
    ]


def _window(state: State, now: int, seen: KnownSpan | None) -> tuple[Window, str]:
    """Return the range: without one in the address the last seven days, or everything if all data is older."""
    if not state.start:
        is_older = seen is not None and seen.last_at < live_window(DEFAULT, now).start
        state = replace(state, start=ALL if is_older else DEFAULT)
    return window(state, now, (seen.first_at, seen.last_at) if seen else None)


def _everything(state: State) -> Component:
    return dcc.Link("Show all groups", href=state.href("deploys"))


def _summary(rows: list[Row]) -> str:
    groups = len({(row["cluster"], row["group_id"]) for row in rows})
    announced = sum(row["text"] is not None for row in rows)
    missing = sum(len(row["not_back"]) for row in rows)
    return (
        f"{count(len(rows), 'deploy')} of {count(groups, 'group')}: {announced:,} announced by a mark, "
        f"{len(rows) - announced:,} recognized by their rebalances. "
        + ("All members came back." if not missing else f"{count(missing, 'member')} did not come back.")
    )


def _tiles(rows: list[Row]) -> Component:
    total, low, high = loss_interval.summed(
        (row["lost_resource_seconds"], row["lost_resource_seconds_low"], row["lost_resource_seconds_high"])
        for row in rows
    )
    worst = max(rows, key=lambda row: row["lost_resource_seconds"])
    missing = sum(len(row["not_back"]) for row in rows)
    return html.Div(
        [
            tile("Lost in deploys", amount(total), f"resource-seconds: {loss_interval.limits(low, high)}"),
            tile("Costliest", amount(worst["lost_resource_seconds"]), visible(worst["group_id"], 40)),
            tile("Did not come back", f"{missing:,}", "members within an hour, or so far", loud=missing > 0),
        ],
        className="tiles",
    )


def _none(state: State, view: Window, seen: KnownSpan | None, *, is_one: bool) -> Component:
    """Return a notice that separates the cases: not observed, filtered, no deploy."""
    everything = dcc.Link(
        "Show all data",
        href=state.href("deploys", cluster=state.cluster, q=state.q, from_=ALL, to="", **_group(state)),
        className="button",
    )
    if seen is None or not seen.reaches(view):
        when = (
            ""
            if seen is None
            else f" Records are of {instant(seen.first_at)[:19]} to {instant(seen.last_at)[:19]} {zone()}."
        )
        return empty("unobserved", "Not observed in this range", f"No record lies in this range.{when}", everything)
    whose = "of this group " if is_one else "of such a group " if state.q else ""
    text = (
        f"No mark announced a deploy {whose}in this range, and no rebalance was caused by one. “regroup mark TEXT” "
        "announces a deploy."
    )
    return empty("filtered" if whose else "nothing", "No deploy", text, everything)


def _group(state: State) -> dict[str, object]:
    return {"group": state.group} if state.group else {"gid": state.gid} if state.gid else {}


def _cells(state: State, row: Row, newest: int) -> list[Cell]:
    key = {"cluster": row["cluster"], "group": row["group_id"]}
    pair = state.href("deploys", **key, deploy=row["started_at"])
    return [
        dcc.Link(instant(row["started_at"])[:19], href=pair),
        dcc.Link(visible(row["group_id"], 60), href=deploy_pair.group_then(state, row, newest)),
        dcc.Link("with the one before", href=pair) if row["deploys_before"] else "nothing before it",
        words.title(row),
        words.cost(row) if row["rebalances"] or row["lost_resource_seconds"] else words.followed(row, newest),
        words.against_before(row),
        words.stable(row, newest),
        words.not_back(row, newest),
        words.slowest(row),
        evidence_mark(row["evidence"]),
    ]
