"""Patterns of clusters that last: what, since when, which groups, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.text import instant, visible
from dashboards.views.components import Cell, table_panel
from dashboards.views.patterns import name
from schemas.written import capitalized, count

HEAD = ("Cluster", "What", "About", "Since (UTC)", "Groups", "Evidence", "Why", "What to do")
NAMED = 3
HIDDEN = "groups that you may not see"
LONGEST = 2_000


def lasting_patterns(rows: Sequence[Row]) -> list[Component]:
    """Return the patterns as a panel; nothing if there are none."""
    if not rows:
        return []
    text = "Patterns of several groups, or that only log lines and polls show, and that have no end in the data."
    return [table_panel("Patterns of the cluster", text, HEAD, [_cells(row) for row in rows])]


def _cells(row: Row) -> list[Cell]:
    is_hidden = row["explanation"] is None
    names = [visible(group, 60) for group in (row["group_ids"] or ())[:NAMED]]
    more = (row["groups"] or 0) - len(names)
    groups = f"{', '.join(names)} and {count(more, 'other')}" if names and more > 0 else ", ".join(names)
    return [
        visible(row["cluster"], 40),
        capitalized(name(row["pattern"])),
        HIDDEN if is_hidden else visible(row["subject"] or "generated ids", 80),
        instant(row["started_at"])[:19],
        groups or "none known",
        visible(row["evidence"], 20),
        HIDDEN if is_hidden else visible(row["explanation"], LONGEST),
        visible(row["action"], LONGEST),
    ]
