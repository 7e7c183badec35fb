"""The members of one group over time, in lanes, and the delays of their assignments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from dashboards.lake.lake import Row
from dashboards.text import host, member_label
from dashboards.urlstate import Window
from dashboards.views.timelines.segments import Segment, clipped
from schemas.states import Evidence, GroupEventKind

STATIC = None
"""First part of the key of a static instance's lane. Any text can be a client id."""

DEPARTURES = (GroupEventKind.LEFT, GroupEventKind.SESSION_EXPIRED, GroupEventKind.POLL_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One row of members: a static instance, or members of one client and host whose lifetimes never overlap.

    `label` names it in addresses of pages. `title` is drawn: with the host, where members of one client id ran on
    several hosts. The kind of a membership is the member's label as an owner.
    """

    label: str
    title: str
    memberships: list[Segment]
    members: list[str]


def lanes(
    members: Sequence[Row],
    events: Sequence[Row],
    window: Window,
    observed_until: int,
    pinned: Sequence[str] = (),
) -> list[Lane]:
    """Return the lanes of the members, those with `pinned` labels first, then in order of arrival."""
    memberships = sorted(
        _memberships(members, events, window, observed_until),
        key=lambda membership: (membership[0].start, membership[1]),
    )
    placed: dict[tuple[str | None, str], list[list[tuple[Segment, str, Row]]]] = defaultdict(list)
    for membership, member_id, row in memberships:
        instance = row["group_instance_id"]
        key = (STATIC, instance) if instance else (row["client_id"] or "", row["client_host"] or "")
        free = next((lane for lane in placed[key] if instance or lane[-1][0].latest <= membership.earliest), None)
        if free is None:
            placed[key].append(free := [])
        free.append((membership, member_id, row))
    hosts: dict[str | None, set[str]] = defaultdict(set)
    for client, client_host in placed:
        hosts[client].add(client_host)
    found = [
        Lane(
            label=_lane_label(lane),
            title=_lane_label(lane) if client is STATIC or len(hosts[client]) == 1 else _with_host(lane, len(group)),
            memberships=[s for s, _, _ in lane],
            members=[m for _, m, _ in lane],
        )
        for (client, _), group in placed.items()
        for lane in group
    ]
    return sorted(found, key=lambda lane: (lane.label not in pinned, lane.memberships[0].start, lane.label))


def _lane_label(lane: Sequence[tuple[Segment, str, Row]]) -> str:
    _, member_id, row = lane[-1]
    if len(lane) == 1 or row["group_instance_id"]:
        return member_label(member_id, row["group_instance_id"], row["client_id"])
    return f"{row['client_id']} x{len(lane)}"


def _with_host(lane: Sequence[tuple[Segment, str, Row]], lanes_there: int) -> str:
    """Return `orders 10.0.4.12`, or `10.0.4.12·71b0` if several lanes of that client are on the host.

    The client id is left out then, because the axis has room for one of the two.
    """
    _, member_id, row = lane[-1]
    where = host(row["client_host"])
    if lanes_there == 1:
        return f"{row['client_id']} {where}"
    return f"{where}·{member_label(member_id, None, row['client_id']).rpartition('·')[2]}"


def _memberships(
    members: Sequence[Row], events: Sequence[Row], window: Window, observed_until: int
) -> Iterable[tuple[Segment, str, Row]]:
    rows: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in members:
        rows[row["incarnation"], row["member_id"]].append(row)
    in_order = sorted(events, key=lambda e: e["event_at"])
    came = {e["member_id"]: e for e in reversed(in_order) if e["kind"] == GroupEventKind.JOINED}
    departures = {e["member_id"]: e for e in in_order if e["kind"] in DEPARTURES}
    for (incarnation, member_id), spans in rows.items():
        spans.sort(key=lambda r: r["valid_from_at"])
        first, last = spans[0], spans[-1]
        arrival, departure = came.get(member_id), departures.get(member_id)
        if departure and departure["event_at"] < last["valid_from_at"]:
            departure = None
        start = arrival["event_at"] if arrival else first["valid_from_at"]
        end = last["valid_to_at"] if last["valid_to_at"] is not None else max(observed_until, start)
        grade = departure["evidence"] if departure else Evidence.OBSERVED
        if departure and grade == Evidence.OBSERVED:
            end = departure["event_at"]
        earliest = start
        if arrival and arrival["evidence"] != Evidence.OBSERVED:
            earliest = min(start, first["rejoined_at_earliest"] or start)
            grade = grade if grade == Evidence.INFERRED else arrival["evidence"]
        # The member left between the completion of its last generation and the end of the last join phase.
        since = last["valid_from_at"] if grade == Evidence.INFERRED and departure else end
        membership = Segment(
            earliest=min(earliest, start), start=start, end=max(start, min(since, end)), latest=max(start, end),
            kind=member_label(member_id, last["group_instance_id"], last["client_id"]), evidence=grade,
            generation=first["generation_id"], incarnation=incarnation,
        )  # fmt: skip
        if (part := clipped(membership, window)) is not None:
            yield part, member_id, last


def delays(members: Sequence[Row]) -> list[Segment]:
    """Return the spans in which a Connect leader delays the assignment of lost or revoked work (KIP-415).

    A span begins with an assignment that has a delay. It ends after the delay, or earlier with the next assignment.
    """
    recorded: dict[tuple[int, int], tuple[int, int]] = {}
    for row in members:
        key = row["incarnation"], row["generation_id"]
        start, delay = recorded.get(key, (row["valid_from_at"], 0))
        recorded[key] = min(start, row["valid_from_at"]), max(delay, row["connect_delay_ms"] or 0)
    out: list[Segment] = []
    order = sorted((start, delay, key) for key, (start, delay) in recorded.items())
    for (start, delay, (incarnation, generation)), following in zip_longest(order, order[1:]):
        end = start + delay if following is None else min(start + delay, max(start, following[0]))
        if delay and end > start:
            out.append(
                Segment(earliest=start, start=start, end=end, latest=end, kind="delay", evidence=Evidence.OBSERVED,
                        generation=generation, incarnation=incarnation, proof=str(start + delay))
            )  # fmt: skip
    return out
