"""The table of the page Causes: one row per verdict and cause, cluster, team or group, beside the range before."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.queries.causes import Pending
from dashboards.queries.fleet_queries import group_address
from dashboards.queries.gold_store import GoldStore
from dashboards.teams import NO_TEAM
from dashboards.text import amount, visible
from dashboards.urlstate import State
from dashboards.views import sentences
from dashboards.views.components import Cell, table
from dashboards.views.verdict_styles import PENDING_WORD
from dashboards.views.verdict_words import blamed, lost_of

TITLES = {"": "By verdict and cause", "cluster": "By cluster", "team": "By team", "group": "By group"}
HEADS = {"": ("Blamed on", "Cause"), "cluster": ("Cluster",), "team": ("Team",), "group": ("Group", "Cluster", "Team")}
NOT_KNOWN = "not known"
NO_TEAM_WORD = "no team"


def reach(state: State) -> dict[str, object]:
    """Return the parts of the address that say what the page sums, for `State.href`."""
    return {key: getattr(state, key) for key in ("by", "cluster", "team", "verdict", "cause")}


def team_name(store: GoldStore, position: int) -> str:
    """Return the name of a team in a row; `no team` for groups without one."""
    name = store.teams.name_at(position)
    return NO_TEAM_WORD if name is None else visible(name, 60)


def cause_table(
    state: State,
    store: GoldStore,
    rows: Sequence[Row],
    pending: Pending,
    pending_lost: float,
    *,
    has_before: bool,
    most: int,
) -> Component:
    """Return the panel with the rows of `compared`. Every row leads to its groups, and a group to its page."""
    sums = ("Lost before", "Rebalances", "Rebalances before")
    head = (*HEADS[state.by], "Lost resource-seconds", *sums)
    if state.by:
        head = (*HEADS[state.by], "Lost resource-seconds", "Not analyzed yet", *sums, "Mostly")
    cells = [[*_names(state, store, row), *_sums(state, row, has_before=has_before)] for row in rows]
    if not state.by and pending.rebalances:
        link = _groups(state, PENDING_WORD)
        cells.append([link, "not known yet", amount(pending_lost), NOT_KNOWN, f"{pending.rebalances:,}", NOT_KNOWN])
    text = "Before: in the range of the same length before this one"
    text += "." if has_before else ", which was not recorded as a whole, so its sums are not known."
    if state.by == "group" and len(rows) >= most:
        total = max(row["total"] for row in rows)
        text += f" The {most} costliest of {total:,} groups."
    text += " Select a row's name for its page." if state.by == "group" else " Select a row's name for its groups."
    body = table(head, cells, empty="No rebalance has a verdict here.")
    return html.Section([html.H2(TITLES[state.by]), html.P(text, className="summary"), body], className="panel")


def _groups(state: State, text: str, **limits: str) -> Component:
    """Return a link to the groups of a row."""
    return dcc.Link(text, href=state.href("causes", **reach(state) | {"by": "group"} | limits))


def _names(state: State, store: GoldStore, row: Row) -> list[Cell]:
    match state.by:
        case "cluster":
            return [_groups(state, visible(row["cluster"], 60), cluster=row["cluster"])]
        case "team":
            name = store.teams.name_at(row["team"])
            return [_groups(state, team_name(store, row["team"]), team=NO_TEAM if name is None else name)]
        case "group":
            href = state.href("group", cluster=row["cluster"], **group_address(row["group_id"]))
            team = team_name(store, row["team"]) if row.get("team") is not None else NO_TEAM_WORD
            return [dcc.Link(visible(row["group_id"], 80), href=href), visible(row["cluster"], 40), team]
        case _:
            verdict, cause = row["verdict"], row["cause"]
            link = _groups(state, sentences.cause(cause), verdict=verdict, cause=cause)
            return [blamed(verdict), link]


def _sums(state: State, row: Row, *, has_before: bool) -> list[Cell]:
    before = (amount(row["lost_before"]), f"{row['rebalances_before']:,}") if has_before else (NOT_KNOWN, NOT_KNOWN)
    counts = (before[0], f"{row['rebalances']:,}", before[1])
    if not state.by:
        return [lost_of(row), *counts]
    # A row without a verdict whose rebalances still wait for theirs is shown as pending, not as a loss of 0.
    lost = lost_of(row) if row["rebalances"] or not row["pending_rebalances"] else PENDING_WORD
    waiting, mostly = "none", "nothing"
    if row["pending_rebalances"]:
        mostly, waiting = PENDING_WORD, f"{amount(row['pending_lost'])} in {row['pending_rebalances']:,}"
    if row["main_verdict"] is not None:
        mostly = f"{blamed(row['main_verdict'])}: {sentences.cause(row['main_cause'])}"
    return [lost, waiting, *counts, mostly]
