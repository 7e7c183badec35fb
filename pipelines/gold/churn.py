"""The churn of a group: instances that stopped and returned, and disturbances, without Kafka's reaction to them.

Replays under another policy start from the churn. So it must not depend on the assignor, the protocol or a timeout that
the policy may change.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.gold.instance_tracker import Instance, Membership, Number, instances
from pipelines.gold.memberships import CAME, GONE, Silver, number
from schemas.rows import GenerationMemberRow, GenerationRow, GroupEventRow, StallRow
from schemas.states import Evidence, GroupEventKind, GroupType, StallCause, Trigger

Resource = tuple[str, int]

DISTURBING = (
    Trigger.LEADER_REJOINED,
    Trigger.METADATA_CHANGED,
    Trigger.SUBSCRIPTION_CHANGED,
    Trigger.ENFORCED,
)
GROWING = (Trigger.FIRST_MEMBER, Trigger.MEMBER_JOINED, Trigger.COOPERATIVE_FOLLOWUP, Trigger.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """One absence of an instance. Times are in milliseconds.

    The instance stopped working at `stopped_at`, the coordinator removed it at `gone_at`, and its next process asked to
    join at `back_at` (None: never). `departure_kind`: left, session_expired or poll_timeout. `owned` is the number of
    resources that it owned. It stopped at most `early_ms` before and `late_ms` after the estimate.
    """

    instance: int
    stopped_at: int
    gone_at: int
    back_at: int | None
    departure_kind: GroupEventKind
    owned: int = 0
    early_ms: int = 0
    late_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """The churn of a group in a window. Times are in milliseconds.

    `first` holds the resources of each instance at `start_ms`. `arrivals` are (time, instance) of instances that join
    later.
    """

    start_ms: int
    end_ms: int
    instances: tuple[Instance, ...]
    first: Mapping[int, frozenset[Resource]]
    arrivals: tuple[tuple[int, int], ...]
    outages: tuple[Outage, ...]
    disturbances: tuple[int, ...]
    resources: tuple[Resource, ...]
    assignor: str
    lost_ms: int
    rebalances: int

    def topics(self, instance: int) -> frozenset[str]:
        """Return the topics of an instance's last membership."""
        return frozenset(self.instances[instance].memberships[-1].topics)


def churn(silver: Silver, quiet_ms: int) -> Churn | None:
    """Return the churn after the group's start, or None if the window contains only the start.

    The start is the run of first generations in which the group only grows, each within `quiet_ms` of the previous one.
    It is left out because its cost depends on how members are started, which no setting changes.
    """
    generations = sorted(silver["generations"], key=number)
    if not generations:
        return None
    base = _started(generations, quiet_ms)
    later = generations[base + 1 :]
    start = generations[base]["completed_at"] or generations[base]["joined_at"]
    found = instances(memberships(silver))
    outages = tuple(o for o in _outages(found, silver) if o.stopped_at > start)
    if not later and not outages:
        return None
    of_member = {one.member_id: i.number for i in found for one in i.memberships}
    first: dict[int, set[Resource]] = defaultdict(set)
    for row in silver["generation_members"]:
        if number(row) == number(generations[base]) and row["valid_from_at"] <= start:
            first[of_member[row["member_id"]]] |= _resources(row)
    everything = sorted({r for row in silver["generation_members"] for r in _resources(row)})
    after = {number(row) for row in later}
    stalls = [s for s in silver["stalls"] if (s["incarnation"], s["generation_id"]) in after or _within(s, start)]
    return Churn(
        start_ms=start,
        end_ms=max(start, *known_instants(silver, later)),
        instances=tuple(found),
        first={i: frozenset(r) for i, r in sorted(first.items())},
        arrivals=tuple((i.memberships[0].arrived_at, i.number) for i in found if i.memberships[0].arrived_at > start),
        outages=outages,
        disturbances=tuple(g["prepared_at"] or g["joined_at"] for g in later if _disturbs(g)),
        resources=tuple(everything),
        assignor=next((g["assignor"] for g in reversed(generations) if g["assignor"]), "range"),
        lost_ms=sum(map(lost_ms, stalls)),
        rebalances=len(later),
    )


def is_lost(stall: StallRow) -> bool:
    """Return whether a stop counts as lost. It does not while it is open, or if the group was empty (idle)."""
    return stall["stopped_ms"] is not None and stall["cause"] != StallCause.NO_MEMBER


def lost_ms(stall: StallRow) -> int:
    """Return the best estimate of the length of a stop in milliseconds, 0 if it does not count as lost (`is_lost`)."""
    return (stall["stopped_ms"] or 0) if is_lost(stall) else 0


def stopped_at(stall: StallRow) -> int:
    """Return the best estimate of the time at which the resource stopped, in milliseconds."""
    if stall["stopped_ms"] is not None and stall["resumed_at_earliest"] is not None:
        return int(stall["resumed_at_earliest"] - stall["stopped_ms"])
    return int(stall["stopped_at_earliest"] + stall["stopped_at_latest"]) // 2


def _started(generations: Sequence[GenerationRow], quiet_ms: int) -> int:
    """Return the index of the last generation of the group's start."""
    for at in range(1, len(generations)):
        before, g = generations[at - 1], generations[at]
        begun = g["prepared_at"] if g["prepared_at"] is not None else g["prepared_at_latest"]
        done = before["completed_at"]
        grows = not g["left_member_ids"] and not g["is_empty"] and g["trigger"] in GROWING
        if not grows or done is None or begun - done > quiet_ms or g["incarnation"] != before["incarnation"]:
            return at - 1
    return len(generations) - 1


def _within(stall: StallRow, start: int) -> bool:
    return stall["cause"] == StallCause.STATIC_RESTART and stopped_at(stall) > start


def _disturbs(g: GenerationRow) -> bool:
    return g["trigger"] in DISTURBING and not g["joined_member_ids"] and not g["left_member_ids"]


def _resources(row: GenerationMemberRow) -> set[Resource]:
    return {(r["name"], r["index"]) for r in row["assigned"] or ()}


def known_instants(silver: Silver, later: Sequence[GenerationRow]) -> list[int]:
    """Return the times in the generations `later` and in all events and stalls; the latest is the end of the data."""
    times = [at for g in later for at in (g["joined_at"], g["synced_at"], g["completed_at"])]
    known = [at for at in times if at is not None]
    known += [e["event_at"] for e in silver["group_events"]]
    return known + [s["resumed_at_earliest"] for s in silver["stalls"] if s["resumed_at_earliest"] is not None]


def _outages(found: Sequence[Instance], silver: Silver) -> list[Outage]:
    out = []
    last = {row["member_id"]: len(row["assigned"] or ()) for row in sorted(silver["generation_members"], key=number)}
    bounds = {
        (s["from_member_id"], stopped_at(s)): (s["stopped_at_earliest"], s["stopped_at_latest"])
        for s in silver["stalls"]
    }
    pairs = ((i, *each) for i in found for each in zip(i.memberships, [*i.memberships[1:], None], strict=True))
    for instance, membership, following in pairs:
        if membership.stopped_at is None or membership.gone_at is None or membership.departure_kind is None:
            continue
        back = following.arrived_at if following else None
        earliest, latest = bounds.get(
            (membership.member_id, membership.stopped_at), (membership.stopped_at, membership.stopped_at)
        )
        out.append(
            Outage(
                instance=instance.number,
                stopped_at=membership.stopped_at,
                gone_at=membership.gone_at,
                back_at=back,
                departure_kind=membership.departure_kind,
                owned=last.get(membership.member_id, 0),
                early_ms=max(0, membership.stopped_at - earliest),
                late_ms=max(0, min(latest, membership.gone_at) - membership.stopped_at),
            )
        )
    return out


def memberships(silver: Silver) -> list[Membership]:
    """Return the membership of every member id in the group's silver rows, from its join to its end."""
    generations = sorted(silver["generations"], key=number)
    rows: dict[str, list[GenerationMemberRow]] = defaultdict(list)
    for row in silver["generation_members"]:
        rows[row["member_id"]].append(row)
    events: dict[str, list[GroupEventRow]] = defaultdict(list)
    for event in silver["group_events"]:
        events[event["member_id"]].append(event)
    stops: dict[str, list[StallRow]] = defaultdict(list)
    begun: dict[Number, int] = {}
    for stall in silver["stalls"]:
        stops[stall["from_member_id"]].append(stall)
        at, key = stopped_at(stall), (stall["incarnation"], stall["generation_id"])
        begun[key] = min(at, begun.get(key, at))
    of_number = {number(g): g for g in generations}
    tasks = _subtopologies(silver)
    noticing = _noticing(generations, silver["stalls"])
    following = {number(g): n for g, n in itertools.pairwise(generations)}
    out = []
    for member_id, mine in rows.items():
        mine.sort(key=number)
        came = next((e for e in events[member_id] if e["kind"] in CAME), None)
        gone = next((e for e in events[member_id] if e["kind"] in GONE), None)
        arrived = _arrived(mine[0], came, of_number[number(mine[0])], begun, noticing)
        end, departure_kind = _gone(mine[-1], gone, following.get(number(mine[-1])))
        stop = _stopped(mine[-1], stops[member_id], gone, end)
        if departure_kind == GroupEventKind.LEFT and (gone is None or gone["evidence"] == Evidence.INFERRED):
            # Only its absence is recorded. A client leaves as soon as it has stopped.
            end = stop
        topics = (
            tasks or tuple(mine[-1]["subscribed_topics"] or ()) or tuple(sorted({n for n, _ in _resources(mine[-1])}))
        )
        out.append(_membership(mine[-1], topics, arrived, stop, end, departure_kind))
    return out


def _subtopologies(silver: Silver) -> tuple[str, ...]:
    """Return the subtopologies of a Streams application, any of which each instance can run; empty for other groups."""
    if not any(g["group_type"] == GroupType.STREAMS for g in silver["generations"]):
        return ()
    return tuple(sorted({name for row in silver["generation_members"] for name, _ in _resources(row)}))


def _membership(
    row: GenerationMemberRow,
    topics: tuple[str, ...],
    arrived: int,
    stop: int | None,
    end: int | None,
    departure_kind: GroupEventKind | None,
) -> Membership:
    return Membership(
        member_id=row["member_id"],
        group_instance_id=row["group_instance_id"],
        client_id=row["client_id"] or "",
        client_host=row["client_host"] or "",
        topics=topics,
        session_timeout_ms=row["session_timeout_ms"] or 0,
        rebalance_timeout_ms=row["rebalance_timeout_ms"] or 0,
        arrived_at=arrived,
        stopped_at=stop,
        gone_at=end,
        departure_kind=departure_kind,
    )


def _noticing(generations: Sequence[GenerationRow], stalls: Sequence[StallRow]) -> int:
    """Return the average time in milliseconds until the first of the other members notices that a member left."""
    found = []
    for g in generations:
        mine = [s for s in stalls if (s["incarnation"], s["generation_id"]) == number(g)]
        gone = [stopped_at(s) for s in mine if s["from_member_id"] in (g["left_member_ids"] or ())]
        stayed = [stopped_at(s) for s in mine if s["from_member_id"] not in (g["left_member_ids"] or ())]
        if gone and stayed and not g["joined_member_ids"] and g["trigger"] == Trigger.MEMBER_LEFT:
            found.append(max(0, min(stayed) - min(gone)))
    return sum(found) // len(found) if found else 0


def _arrived(
    row: GenerationMemberRow, came: GroupEventRow | None, g: GenerationRow, begun: Mapping[Number, int], noticing: int
) -> int:
    """Return when a member asked to join.

    The source is a log line; without one, the time is `noticing` before the first of the other members stopped.
    """
    if came is not None and came["evidence"] == Evidence.OBSERVED:
        return int(came["event_at"])
    if g["prepared_at"] is not None:
        return int(g["prepared_at"])
    first = begun.get(number(row))
    return int(row["valid_from_at"] if first is None else min(first - noticing, row["valid_from_at"]))


def _gone(
    row: GenerationMemberRow, gone: GroupEventRow | None, following: GenerationRow | None
) -> tuple[int | None, GroupEventKind | None]:
    if gone is not None:
        return gone["event_at"], GroupEventKind(gone["kind"])
    if row["valid_to_at"] is not None and (following is None or row["valid_to_at"] < following["joined_at"]):
        return row["valid_to_at"], GroupEventKind.LEFT
    if following is None:
        return None, None
    return following["joined_at"], GroupEventKind.LEFT


def _stopped(
    row: GenerationMemberRow, stops: Sequence[StallRow], gone: GroupEventRow | None, end: int | None
) -> int | None:
    if end is None:
        return None
    mine = [stopped_at(s) for s in stops if s["resumed_at_earliest"] is None or s["to_member_id"] != row["member_id"]]
    last = [at for at in mine if at >= row["valid_from_at"] and at <= end]
    if last:
        return max(last) if gone is None or gone["kind"] == GroupEventKind.LEFT else min(last)
    if gone is not None and gone["kind"] == GroupEventKind.SESSION_EXPIRED:
        return int(end - (row["session_timeout_ms"] or 0))
    if gone is not None and gone["kind"] == GroupEventKind.POLL_TIMEOUT:
        return int(end - (row["rebalance_timeout_ms"] or 0))
    return end
