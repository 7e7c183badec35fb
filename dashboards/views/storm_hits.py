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
from schemas.folded_rows import count_of
from schemas.loss_interval import summed, written
from schemas.states import StormScope
from schemas.written import EN_DASH, amount, count

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
    hits = _hits(row, made)
    shown, rest = hits[:GROUPS_LISTED], hits[GROUPS_LISTED:]
    rows = [_group(state, row, hit, made, view) for hit in shown]
    if rest:
        rows.append([f"{count(len(rest), 'other group')}", *_figures(rest), EN_DASH])
    if len(hits) > 1 and row["by_group"] is not None:
        rows.append([html.Strong(f"All {count(len(hits), 'group')}"), *_figures(hits), EN_DASH])
    more = f" The {GROUPS_LISTED} hardest hit are listed." if rest else ""
    text = f"{count(len(hits), 'group')}, hardest hit first; each leads to its page, 15 min around the storm.{more}"
    body = table(("Group", "Rebalances in the storm", "Lost resource-seconds", "Costliest"), rows)
    return html.Section([html.H2("Groups"), html.P(text, className="summary"), body], className="panel")


def causes_panel(row: Row) -> Component | None:
    """Return a panel of the storm's unexplained rebalances by cause; None if the causes are unknown or hidden."""
    found = row["causes"]
    if not found:
        return None
    rows: list[list[Cell]] = [
        [sentences.cause(each["cause"]), f"{each['rebalances']:,}", f"{each['groups']:,}"] for each in found
    ]
    text = "Each unexplained rebalance has the cause shown on its group's page."
    if row["scope"] == StormScope.FLEET:
        text += " Of many groups, the hardest hit are diagnosed."
    body = table(("Cause", "Rebalances", "Groups"), rows)
    return html.Section([html.H2("Causes"), html.P(text, className="summary"), body], className="panel")


def _hits(row: Row, made: Sequence[Row]) -> list[Row]:
    """Return the loss of each group from the storm's row.

    If the row has none, or the reader may not see all groups, the loss is computed from the groups' generations.
    """
    if row["by_group"] is not None:
        return [dict(each) for each in row["by_group"]]
    end = row["ended_at"]
    inside = [g for g in made if row["started_at"] <= g["joined_at"] and (end is None or g["joined_at"] <= end)]
    hits = []
    for group in row["group_ids"] or ():
        mine = [g for g in inside if g["group_id"] == group]
        lost, low, high = summed((g["lost"], g["lost_low"], g["lost_high"]) for g in mine)
        hits.append(
            {
                "group_id": group,
                "rebalances": count_of(mine),
                "lost_resource_seconds": lost,
                "lost_resource_seconds_low": low,
                "lost_resource_seconds_high": high,
            }
        )
    return sorted(hits, key=lambda hit: (-hit["lost_resource_seconds"], -hit["rebalances"], hit["group_id"]))


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
    return [dcc.Link(visible(group, 80), href=href), *_figures([hit]), named]


def _figures(hits: Sequence[Row]) -> tuple[str, str]:
    rebalances = f"{sum(hit['rebalances'] for hit in hits):,}"
    if any(hit.get("lost_resource_seconds_low") is None for hit in hits):
        # A row of an earlier Regroup has no intervals of its groups.
        return rebalances, amount(sum(hit["lost_resource_seconds"] for hit in hits))
    low, high = "lost_resource_seconds_low", "lost_resource_seconds_high"
    return rebalances, written(*summed((hit["lost_resource_seconds"], hit[low], hit[high]) for hit in hits))
