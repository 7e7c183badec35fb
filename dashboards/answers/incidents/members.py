"""The members of groups over a time, with their hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboards.answers.incidents.incident import Section
from dashboards.answers.written import at
from dashboards.lake.lake import Row
from dashboards.queries.store import Store
from dashboards.text import host, instant, member_label, visible
from dashboards.urlstate import Window
from schemas.written import count

LISTED = 100

HEAD = ("Group", "Member", "Member id", "Host", "First seen (UTC)", "Last seen (UTC)")


def members_of(store: Store, cluster: str, groups: Sequence[str], window: Window) -> list[Row]:
    """Return the memberships of these groups that overlap the window, one row per generation, with `group_id`."""
    return [{"group_id": group, **row} for group in groups for row in store.members(cluster, group, window).rows]


def members_section(rows: Sequence[Row], text: str = "") -> Section:
    """Return the members of groups, each once, in order of group and first appearance.

    `rows` as `members_of` returns them. A member without an end is a member still, as last seen.
    """
    found = each_once(rows)
    more = "" if len(found) <= LISTED else f" The first {LISTED} are listed."
    return Section(
        name="Members",
        text=f"{count(len(found), 'member')} in this time.{text}{more}",
        head=HEAD,
        rows=[_cells(*pair) for pair in found[:LISTED]],
    )


def each_once(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the first and the last row of each member."""
    spans: dict[tuple[str, int, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["group_id"], row["valid_from_at"], row["member_id"])):
        spans.setdefault((row["group_id"], row["incarnation"], row["member_id"]), []).append(row)
    return [(each[0], each[-1]) for each in spans.values()]


def _cells(first: Row, last: Row) -> tuple[str, ...]:
    return (
        visible(last["group_id"], 80),
        visible(member_label(last["member_id"], last["group_instance_id"], last["client_id"]), 80),
        visible(last["member_id"], 90),
        host(last["client_host"], 60),
        instant(first["valid_from_at"])[:19],
        "still a member" if last["valid_to_at"] is None else instant(last["valid_to_at"])[:19],
    )


def member_values(member: Row, first: Row | None = None) -> dict[str, Any]:
    """Return a member as values of JSON, names as they are."""
    names = ("group_id", "member_id", "group_instance_id", "client_id", "client_host", "client_library", "is_leader")
    return {name: member.get(name) for name in names} | {
        "valid_from": at((first or member)["valid_from_at"]),
        "valid_to": at(member["valid_to_at"]),
    }
