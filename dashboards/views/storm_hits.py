"""A storm's effects as tables: its groups with the loss of each, and the causes of its rebalances."""

from __future__ import annotations

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.text import visible
from dashboards.urlstate import State, Window
from dashboards.views import sentences
from dashboards.views.components import Cell, table
from dashboards.views.storm_words import CAUSES_HEAD, cause_cells, causes_sentence, hit_figures
from dashboards.views.storm_words import hits as hits_of
from schemas.written import EN_DASH, count

GROUPS_LISTED = 100


def rebalance_href(state: State, row: Row, g: Row) -> str:
    """Return the address of a generation of one of the storm's groups."""
    return state.href(
        "rebalance", cluster=row["cluster"], group=g["group_id"], incarnation=g["incarnation"],
        generation=g["generation_id"], from_="", to="",
    )  # fmt: skip


def groups_panel(state: State, row: Row, made: Sequence[Row], view: Window) -> Component:
    """List the storm's groups, hardest hit first; their figures add up to those of the storm.

    `made` holds the generations of these groups in `view`; the costliest of each group is linked.
    """
    hits = hits_of(row, made)
    shown, rest = hits[:GROUPS_LISTED], hits[GROUPS_LISTED:]
    rows = [_group(state, row, hit, made, view) for hit in shown]
    if rest:
        rows.append([f"{count(len(rest), 'other group')}", *hit_figures(rest), EN_DASH])
    if len(hits) > 1 and row["by_group"] is not None:
        rows.append([html.Strong(f"All {count(len(hits), 'group')}"), *hit_figures(hits), EN_DASH])
    more = f" The {GROUPS_LISTED} hardest hit are listed." if rest else ""
    text = f"{count(len(hits), 'group')}, hardest hit first; each leads to its page, 15 min around the storm.{more}"
    body = table(("Group", "Rebalances in the storm", "Lost resource-seconds", "Costliest"), rows)
    return html.Section([html.H2("Groups"), html.P(text, className="summary"), body], className="panel")


def causes_panel(row: Row) -> Component | None:
    """Return a panel of the storm's unexplained rebalances by cause; None if the causes are unknown or hidden."""
    rows = cause_cells(row)
    if not rows:
        return None
    body = table(CAUSES_HEAD, rows)
    return html.Section([html.H2("Causes"), html.P(causes_sentence(row), className="summary"), body], className="panel")


def _group(state: State, row: Row, hit: Row, made: Sequence[Row], view: Window) -> list[Cell]:
    group, end = hit["group_id"], row["ended_at"]
    mine = [g for g in made if g["group_id"] == group and row["started_at"] <= g["joined_at"]]
    worst = max((g for g in mine if end is None or g["joined_at"] <= end), key=lambda g: g["lost"], default=None)
    to = "" if row["is_open"] else view.end
    href = state.href("group", cluster=row["cluster"], group=group, from_=view.start, to=to)
    named: Cell = EN_DASH
    if worst is not None:
        text = f"{sentences.term(worst)} {worst['generation_id']}"
        named = dcc.Link(text, href=rebalance_href(state, row, worst))
    return [dcc.Link(visible(group, 80), href=href), *hit_figures([hit]), named]
