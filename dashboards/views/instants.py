"""The state of a group at an instant, and what differs between two instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dash import dcc, html
from dash.development.base_component import Component

from dashboards.lake.lake import Row
from dashboards.queries.store import Store
from dashboards.text import ABSENT, duration, host, instant, member_label, span, visible
from dashboards.urlstate import State, Window
from dashboards.views.clients.libraries import library
from dashboards.views.components import Cell, aria, facts, table
from dashboards.views.ranges import keyed
from dashboards.views.theme import STYLES
from dashboards.views.timelines.states import states
from dashboards.zone import zone
from schemas.written import count

Resource = tuple[str, int]
NAMED = 12
"""Resources that a cell names."""

MEMBERS_LISTED = 200
HEAD = ("Member", "Host", "Library", "Role", "Session timeout", "Owned", "Resources")
COMPARED_HEAD = ("Member", "Host", "Change", "Session timeout", "Owned then", "Owned", "Gained", "Lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInstant:
    """What the tables say of a group at `at` (ms).

    `members` are rows of `generation_members` by name: the instance id, else the client id if no other member has it,
    else the member id. `stopped` are the resources that surely were not processed, `uncertain` those that may not have
    been. `style` is a key of `theme.STYLES`.
    """

    at: int
    style: str
    generation: Row | None
    members: Mapping[str, Row]
    stopped: frozenset[Resource]
    uncertain: frozenset[Resource]


def group_instant(store: Store, found: Row, at: int, observed_until: int) -> GroupInstant:
    """Return the state of a group (a row of `groups`) at an instant. Raises `LakeError` if a table cannot be read."""
    of, now = (found["cluster"], found["group_id"]), Window(at, at + 1, is_live=False)
    generations = store.generations(*of, now).rows
    # An event between the last generation and the instant, such as the group's deletion, ends its state.
    since = min((g["joined_at"] for g in generations), default=at)
    events = store.events(*of, Window(since, at + 1, is_live=False)).rows
    strip = states(generations, found, events, now, observed_until)
    rows = [m for m in store.members_at(*of, at) if m["valid_to_at"] is None or m["valid_to_at"] > at]
    stalls = store.stalls(*of, now).rows
    surely = [s for s in stalls if s["stopped_at_latest"] <= at and _is_before(at, s["resumed_at_earliest"])]
    stopped = frozenset(map(_resource, surely))
    return GroupInstant(
        at=at,
        style=strip[-1].kind if strip else "unknown",
        generation=next((g for g in generations if g["joined_at"] <= at), None),
        members=_named(rows),
        stopped=stopped,
        uncertain=frozenset(map(_resource, stalls)) - stopped,
    )


def _is_before(at: int, end: int | None) -> bool:
    return end is None or at < end


def _resource(row: Row) -> Resource:
    return row["name"], row["index"]


def _named(rows: Sequence[Row]) -> dict[str, Row]:
    clients = [m["client_id"] for m in rows]
    return {
        m["group_instance_id"] or (m["client_id"] if clients.count(m["client_id"]) == 1 else m["member_id"]): m
        for m in sorted(rows, key=lambda m: (m["client_id"] or "", m["member_id"]))
    }


def _owned(member: Row | None) -> frozenset[Resource]:
    return frozenset((r["name"], r["index"]) for r in (member or {}).get("assigned") or ())


def resources_text(resources: frozenset[Resource]) -> str:
    """Return names with their numbers, such as `orders 0, 3; refunds 1`; a connector (index -1) has no number."""
    parts = []
    for name, of_name in groupby(sorted(resources), key=lambda r: r[0]):
        indexes = [index for _, index in of_name if index >= 0]
        runs = [list(run) for _, run in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0])]
        numbers = ", ".join(span(str(run[0][1]), str(run[-1][1])) for run in runs[:NAMED])
        more = f" and {len(runs) - NAMED} more" if len(runs) > NAMED else ""
        parts.append(f"{visible(name, 60)} {numbers}{more}".strip())
    return "; ".join(parts[:NAMED]) + (f"; {len(parts) - NAMED} more" if len(parts) > NAMED else "") or ABSENT


def instant_panel(
    state: State, view: Window, one: GroupInstant | None, then: GroupInstant | None, steps: Sequence[int]
) -> Component:
    """Return the panel of the instant in the address, and of the instant that it is compared with.

    A slider moves the instant over the range in `view`. `steps` are the times (ms) of the changes of the group that the
    page knows, in any order.
    """
    button = html.Button("Inspect here (I)", className="button", type="button", **keyed("i"), **aria("inspect"))
    if one is None:
        text = "Point at a time in the figure and press I: members, owners and settings of that instant."
        return html.Section(
            [html.H2("At an instant"), html.P([text, " ", button], className="quiet")], className="panel"
        )
    title = f"At {instant(one.at)} {zone()}"
    if then is None:
        body = [facts(_facts(one)), table(HEAD, _cells(one), empty="No member was in the group.")]
    else:
        title += f", compared with {instant(then.at)} {zone()}"
        body = [html.P(_difference(then, one), className="summary"), facts(_compared_facts(then, one))]
        body.append(table(COMPARED_HEAD, _compared(then, one), empty="No member was in the group."))
    nav = html.Nav([button, *_links(state, one, then, steps)], className="steps", **aria("instants"))
    return html.Section([html.H2(title), nav, _slider(view, one.at), *body], className="panel")


def _slider(view: Window, at: int) -> Component:
    """Return a slider over the range, for assets/instants.js."""
    first, last = min(view.start, at), max(view.end, at)
    slider = dcc.Input(id="instant", type="range", min=first, max=last, step="any", value=at)
    return html.Label(["Move", slider], htmlFor="instant", className="slider")


def _links(state: State, one: GroupInstant, then: GroupInstant | None, steps: Sequence[int]) -> list[Component]:
    earlier, later = [at for at in steps if at < one.at], [at for at in steps if at > one.at]
    against = None if then is None else then.at
    found = []
    if earlier:
        found.append(_link(state, "← change", max(earlier), against))
    if later:
        found.append(_link(state, "change →", min(later), against))
    if then is None:
        found.append(_link(state, "Compare other instants with this one", one.at, one.at))
    else:
        found += [_link(state, "Swap", then.at, one.at), _link(state, "Stop comparing", one.at, None)]
    return found


def _link(state: State, text: str, at: int, against: int | None) -> Component:
    here: dict[str, object] = {"cluster": state.cluster, "group": state.group or None, "gid": state.gid}
    href = state.href("group", **here, lanes=state.lanes, at=at, against=against)
    return dcc.Link(text, href=href, className="button")


def _facts(one: GroupInstant) -> list[tuple[str, Cell]]:
    g = one.generation
    numbered = "none known" if g is None else f"{g['generation_id']}, since {instant(g['joined_at'])} {zone()}"
    owned = frozenset().union(*map(_owned, one.members.values()))
    return [
        ("State", STYLES.get(one.style, STYLES["unknown"]).word),
        ("Generation", numbered),
        ("Protocol, assignor", ABSENT if g is None else _protocol(g)),
        ("Owned", f"{len(owned):,} by {count(len(one.members), 'member')}"),
        ("Not processed", f"{len(one.stopped):,}: {resources_text(one.stopped)}" if one.stopped else "none known"),
        (
            "Perhaps not processed",
            f"{len(one.uncertain):,}: {resources_text(one.uncertain)}" if one.uncertain else "none",
        ),
    ]


def _protocol(g: Row) -> str:
    return ", ".join(visible(text, 60) for text in (g["group_protocol"], g["assignor"]) if text)


def _cells(one: GroupInstant) -> list[tuple[Cell, ...]]:
    return [
        (
            _label(m),
            host(m["client_host"], 60),
            library(m),
            "leader" if m["is_leader"] else "",
            duration(m["session_timeout_ms"]),
            len(_owned(m)),
            resources_text(_owned(m)),
        )
        for m in list(one.members.values())[:MEMBERS_LISTED]
    ]


def _label(m: Row) -> str:
    return visible(member_label(m["member_id"], m["group_instance_id"], m["client_id"]), 80)


def _difference(then: GroupInstant, one: GroupInstant) -> str:
    joined, left = one.members.keys() - then.members.keys(), then.members.keys() - one.members.keys()
    before = {r: name for name, m in then.members.items() for r in _owned(m)}
    after = {r: name for name, m in one.members.items() for r in _owned(m)}
    moved = sum(before.get(r) not in (None, name) for r, name in after.items())
    lost, new = before.keys() - after.keys(), after.keys() - before.keys()
    return (
        f"{count(len(joined), 'member')} joined and {len(left):,} left; {moved:,} of {len(after):,} resources have "
        f"another owner, {len(lost):,} have none any more, {len(new):,} are new."
    )


def _compared_facts(then: GroupInstant, one: GroupInstant) -> list[tuple[str, Cell]]:
    """Return the facts of both instants: one value if they agree, else `before → after`."""
    return [
        (name, value if value == former else f"{former} → {value}")
        for (name, former), (_, value) in zip(_facts(then), _facts(one), strict=True)
    ]


def _compared(then: GroupInstant, one: GroupInstant) -> list[tuple[Cell, ...]]:
    return [
        _compared_cells(then.members.get(name), one.members.get(name))
        for name in list(dict.fromkeys([*one.members, *then.members]))[:MEMBERS_LISTED]
    ]


def _compared_cells(before: Row | None, after: Row | None) -> tuple[Cell, ...]:
    m = after or before or {}
    former, owned = _owned(before), _owned(after)
    if before is None or after is None:
        change = "joined" if before is None else "left"
    else:
        change = "same process" if before["member_id"] == after["member_id"] else "another process"
    return (
        _label(m),
        _changed(before, after, lambda row: host(row["client_host"], 60)),
        change,
        _changed(before, after, lambda row: duration(row["session_timeout_ms"])),
        len(former),
        len(owned),
        resources_text(owned - former),
        resources_text(former - owned),
    )


def _changed(before: Row | None, after: Row | None, text: Callable[[Row], str]) -> str:
    found = list(dict.fromkeys(text(row) for row in (before, after) if row is not None))
    return " → ".join(found)
