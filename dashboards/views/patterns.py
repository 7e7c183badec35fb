"""Patterns that a group shows: what is wrong, since when, how often, who, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.queries.fleet_queries import group_address
from dashboards.text import instant, visible
from dashboards.urlstate import State
from dashboards.views.components import Cell, evidence_mark, table
from dashboards.zone import zone
from schemas.states import Pattern
from schemas.written import capitalized, count

NAMES: Mapping[Pattern, str] = {
    Pattern.REJOIN_LOOP: "rejoin loop that changes nothing",
    Pattern.WAITING_FOR_ONE: "everybody waits for one member",
    Pattern.STUCK_REBALANCE: "rebalance does not complete",
    Pattern.TOPIC_WITHOUT_OWNER: "topic without an owner",
    Pattern.GROUP_ID_SHARED: "one group id for several applications",
    Pattern.OWNER_NOT_WORKING: "owner that does not work",
    Pattern.COORDINATOR_NOT_FOUND: "members that lost their coordinator",
    Pattern.OFFSETS_PARTITION_DOWN: "offsets partition down",
    Pattern.CONNECT_CONFIG_MISMATCH: "Connect: configuration not read",
    Pattern.CONNECT_DELAY: "Connect: work waits for a lost worker",
    Pattern.NEVER_CLOSED: "consumers that are never closed",
    Pattern.INSTANCE_ID_USED_TWICE: "group.instance.id used twice",
    Pattern.INSTANCE_ID_NOT_KEPT: "group.instance.id never the same",
    Pattern.POLL_TIMEOUTS: "polls that come too late",
    Pattern.MIGRATION_INCOMPLETE: "migration refused or half done",
    Pattern.NEW_GROUP_PER_START: "new group id at each start",
    Pattern.REGISTRY_WITHOUT_LEADER: "Schema Registry without a leader",
}

HEAD = ("Pattern", "About", "Since (UTC)", "Until (UTC)", "How often", "Who", "Evidence", "From")
NAMED = 3
LONGEST = 2_000


def name(pattern: str) -> str:
    """Return a pattern in words; an unknown value as it is."""
    return NAMES.get(Pattern(pattern), pattern) if pattern in set(Pattern) else visible(pattern, 60)


def panel(rows: Sequence[Row]) -> list[Component]:
    """Return the patterns of a group as a section: a summary, a table, and explanation and action of each."""
    if not rows:
        return []
    lasting = sum(row["ended_at"] is None for row in rows)
    ends = f"{lasting:,} with no end in the data" if lasting else "all over"
    body = [
        html.H2("Patterns"),
        html.P(f"{count(len(rows), 'pattern')} found; {ends}.", className="summary"),
        table(HEAD, [_cells(row) for row in rows]),
        html.Ul([html.Li(_details(row)) for row in rows]),
    ]
    return [html.Section(body, className="panel")]


def lasting_list(rows: Sequence[Row], state: State) -> list[Component]:
    """Return the groups with a pattern that has no end in the data, newest first, with links to their pages."""
    if not rows:
        return []
    items = [html.Li(_item(row, state)) for row in rows]
    text = "Patterns that have no end in the data, the newest first. Each group's page says what to do."
    return [html.Section([html.H2("Patterns"), html.P(text, className="summary"), html.Ul(items)], className="panel")]


def _item(row: Row, state: State) -> list[Any]:
    address = state.href("group", cluster=row["cluster"], **group_address(row["group_id"]))
    about = f" ({visible(row['subject'], 80)})" if row["subject"] else ""
    since = f"since {instant(row['started_at'])[:19]} {zone()}"
    return [
        dcc.Link(visible(row["group_id"], 80), href=address),
        f", {visible(row['cluster'], 40)}: {name(row['pattern'])}{about}, {since} ",
        evidence_mark(row["evidence"]),
    ]


def _cells(row: Row) -> list[Cell]:
    return [
        name(row["pattern"]),
        visible(row["subject"], 80) if row["subject"] else "the group",
        instant(row["started_at"])[:19],
        "no end known" if row["ended_at"] is None else instant(row["ended_at"])[:19],
        int(row["times"]),
        _names(row["instances"] or ()),
        evidence_mark(row["evidence"]),
        ", ".join(visible(source, 10) for source in row["sources"] or ()),
    ]


def _names(names: Sequence[str]) -> str:
    if not names:
        return "nobody in particular"
    more = len(names) - NAMED
    shown = ", ".join(visible(one, 60) for one in names[:NAMED])
    return f"{shown} and {count(more, 'other')}" if more > 0 else shown


def _details(row: Row) -> list[Any]:
    return [
        html.Strong(f"{capitalized(name(row['pattern']))}: "),
        visible(row["explanation"], LONGEST),
        html.Strong(" What to do: "),
        visible(row["action"], LONGEST),
    ]
