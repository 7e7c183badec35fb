"""The churn of a group: instances that stopped and returned, and disturbances, without Kafka's reaction to them.

Replays under another policy start from the churn. So it must not depend on the assignor, the protocol or a timeout that
the policy may change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.gold.instance_tracker import Instance
from pipelines.gold.memberships import Silver, number, tracked
from pipelines.gold.stall_times import stopped_at
from pipelines.gold.stop_times import StopTimes
from schemas.rows import GenerationMemberRow, GenerationRow, StallRow
from schemas.states import GroupEventKind, GroupType, StallCause, Trigger

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
    later. `subscriptions` holds the topics of each instance. `stops` are (time, milliseconds lost) of the stops, in
    order; `lost_ms` is their sum.
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
    stops: tuple[tuple[int, int], ...]
    rebalances: int
    subscriptions: Mapping[int, frozenset[str]]

    @property
    def lost_ms(self) -> int:
        """The resource-milliseconds lost in all stops."""
        return sum(lost for _, lost in self.stops)

    def topics(self, instance: int) -> frozenset[str]:
        """Return the topics of an instance's last membership."""
        return self.subscriptions[instance]


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
    times = StopTimes(silver)
    found = tracked(silver, times.first_stops)
    outages = tuple(o for o in _outages(found, times) if o.stopped_at > start)
    if not later and not outages:
        return None
    of_member = {one.member_id: i.number for i in found for one in i.memberships}
    first: dict[int, set[Resource]] = defaultdict(set)
    for row in silver["generation_members"]:
        if number(row) == number(generations[base]) and row["valid_from_at"] <= start:
            first[of_member[row["member_id"]]] |= _resources(row)
    arrivals = ((times.arrived_at(i.memberships[0]), i.number) for i in found)
    everything = sorted({r for row in silver["generation_members"] for r in _resources(row)})
    after = {number(row) for row in later}
    stalls = [s for s in silver["stalls"] if (s["incarnation"], s["generation_id"]) in after or _within(s, start)]
    return Churn(
        start_ms=start,
        end_ms=max(start, *known_instants(silver, later)),
        instances=tuple(found),
        first={i: frozenset(r) for i, r in sorted(first.items())},
        arrivals=tuple((at, instance) for at, instance in arrivals if at > start),
        outages=outages,
        disturbances=tuple(g["prepared_at"] or g["joined_at"] for g in later if _disturbs(g)),
        resources=tuple(everything),
        assignor=next((g["assignor"] for g in reversed(generations) if g["assignor"]), "range"),
        stops=tuple(sorted((stopped_at(s), lost_ms(s)) for s in stalls)),
        rebalances=len(later),
        subscriptions=_subscriptions(found, silver),
    )


def is_lost(stall: StallRow) -> bool:
    """Return whether a stop counts as lost. An open stop does not, and neither does a stop in an empty group (idle)."""
    return stall["stopped_ms"] is not None and stall["cause"] != StallCause.NO_MEMBER


def lost_ms(stall: StallRow) -> int:
    """Return the best estimate of the length of a stop in milliseconds, 0 if it does not count as lost (`is_lost`)."""
    return (stall["stopped_ms"] or 0) if is_lost(stall) else 0


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


def _outages(found: Sequence[Instance], times: StopTimes) -> list[Outage]:
    """Return an absence for each membership that ended, from the same memberships as in diagnoses and health.

    The tracker says which membership follows which, and how and when each ended. The stops of its resources, which
    storms and diagnoses do not need, say when it stopped.
    """
    out = []
    pairs = ((i, *each) for i in found for each in zip(i.memberships, [*i.memberships[1:], None], strict=True))
    for instance, membership, following in pairs:
        end = times.end(membership)
        if end is None:
            continue
        # If both are recorded by one rebalance, the time at which it began is not that of the return.
        back = max(times.arrived_at(following), end.stopped_at + 1) if following else None
        out.append(
            Outage(
                instance=instance.number,
                stopped_at=end.stopped_at,
                gone_at=end.gone_at,
                back_at=back,
                departure_kind=membership.departure_kind or GroupEventKind.LEFT,
                owned=end.owned,
                early_ms=end.early_ms,
                late_ms=end.late_ms,
            )
        )
    return out


def _subscriptions(found: Sequence[Instance], silver: Silver) -> dict[int, frozenset[str]]:
    """Return the topics of each instance: those it subscribed to, or else those it was assigned.

    Any instance of a Streams application can run each of its subtopologies.
    """
    names: dict[str, frozenset[str]] = {}
    for row in sorted(silver["generation_members"], key=number):
        names[row["member_id"]] = frozenset(row["subscribed_topics"] or ()) or frozenset(n for n, _ in _resources(row))
    if any(g["group_type"] == GroupType.STREAMS for g in silver["generations"]):
        tasks = frozenset(name for row in silver["generation_members"] for name, _ in _resources(row))
        names = dict.fromkeys(names, tasks)
    return {i.number: names[i.memberships[-1].member_id] for i in found}
