"""Latencies of a group's members, from its own rebalances: until they notice a rebalance, release resources, and sync.

All latencies are measured on this group. A latency that cannot be measured is Kafka's default, and `Latencies.assumed`
lists it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import fsum
from random import Random
from statistics import median
from typing import Any

from pipelines.gold.churn import Churn, Outage
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import Silver, number
from pipelines.gold.stall_times import stopped_at
from schemas.rows import GenerationMemberRow, GenerationRow
from schemas.states import ClientLibrary, GroupEventKind, GroupProtocol, RebalanceMode, Trigger

HEARTBEAT_MS = 3_000
"""Default of heartbeat.interval.ms in Java and librdkafka."""

HEARTBEATS_MS = (250, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000, 15_000, 20_000)
"""Values of heartbeat.interval.ms in use. The observed delays determine their probabilities."""

DEFAULT_WEIGHT = 20
"""How much more probable the default is than any other value before any observation."""

LATE = 0.1
"""Share of the interval by which a heartbeat may be late, because of the network or its thread."""

CONSUMER_HEARTBEAT_MS = 5_000
CONSUMER_SESSION_MS = 45_000
INITIAL_DELAY_MS = 3_000
SYNC_MS = 10

SOON_MS = 100
"""Shortest plausible interval of automatic commits."""

SLOW_MS = 250
"""If releasing partitions takes at least this long, it is a slow callback and not only a commit."""

LIBRDKAFKA = frozenset({ClientLibrary.LIBRDKAFKA, ClientLibrary.CONFLUENT_KAFKA_JAVASCRIPT})

JOIN_EVERY_MS = 1_000
"""librdkafka joins at most once a second (`rkcg_join_intvl`), unless it has just released partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactions:
    """One rebalance: the time from its start until each remaining member stopped or rejoined, and the time from the
    last of these until the end of the join phase.
    """

    noticed_ms: tuple[int, ...]
    rest_ms: int

    def noticing(self, random: Random, members: int) -> list[int]:
        """Return a noticing time for each of `members`.

        Every observed time is drawn once before any is drawn again, because the slowest member determines the length.
        """
        whole, more = divmod(members, len(self.noticed_ms))
        out = [*self.noticed_ms] * whole + random.sample(self.noticed_ms, more)
        random.shuffle(out)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Observed broker settings. None: not observed, so the default is used and reported."""

    heartbeat_ms: int | None = None
    session_ms: int | None = None
    initial_delay_ms: int | None = None
    assignment_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Latencies of a group in milliseconds.

    `reactions` is empty if nothing was measured. `heartbeats` are possible values of heartbeat.interval.ms with their
    weights. `libraries` are the recognized client libraries; empty if none is.
    """

    reactions: tuple[Reactions, ...]
    heartbeats: tuple[tuple[int, float], ...]
    sync_ms: tuple[int, ...]
    libraries: frozenset[ClientLibrary]
    commit_ms: int
    broker: BrokerSettings
    assumed: tuple[str, ...]

    @property
    def is_librdkafka(self) -> bool:
        """Whether the members are librdkafka's."""
        return bool(self.libraries) and self.libraries <= LIBRDKAFKA

    def heartbeat(self, random: Random) -> int:
        """Return a random heartbeat interval, according to the weights."""
        values, weights = zip(*self.heartbeats, strict=True)
        return int(random.choices(values, weights)[0])

    @property
    def usual_heartbeat_ms(self) -> int:
        """The most probable heartbeat interval."""
        return max(self.heartbeats, key=lambda each: each[1])[0]

    def reaction(self, random: Random, heartbeat_ms: int) -> Reactions:
        """Return the reactions of a random measured rebalance.

        Without one, all members notice at the same time, because members that synced together heartbeat in step.
        """
        if self.reactions:
            return random.choice(self.reactions)
        return Reactions(noticed_ms=(random.randrange(heartbeat_ms),), rest_ms=SYNC_MS)

    def sync(self, random: Random) -> int:
        """Return a random measured time from the end of the join phase to the assignment."""
        return random.choice(self.sync_ms)

    def rest(self, random: Random) -> int:
        """Return a random measured time that releasing partitions takes."""
        return random.choice(self.reactions).rest_ms if self.reactions else SYNC_MS


def with_callbacks(found: Churn, measured: Latencies) -> Churn:
    """Return the churn with earlier stops of members that leave, if the group's callbacks are slow.

    A member that leaves releases its resources as slowly as the members that stay, but may commit only after that.
    """
    if not measured.reactions:
        return found
    usual = round(median(r.rest_ms for r in measured.reactions))
    if usual < SLOW_MS:
        return found

    def corrected(outage: Outage) -> Outage:
        early = outage.gone_at - usual
        if outage.departure_kind != GroupEventKind.LEFT or outage.gone_at - outage.stopped_at >= usual // 2:
            return outage
        return replace(outage, stopped_at=early, late_ms=usual // 2)

    return replace(found, outages=tuple(corrected(o) for o in found.outages))


def latencies(silver: Silver, broker: BrokerSettings) -> Latencies:
    """Return the latencies measured on one group's silver rows, in milliseconds."""
    generations = sorted(silver["generations"], key=number)
    reactions = tuple(_reactions(silver))
    delays = [max(r.noticed_ms) for r in reactions]
    longest = max((m["session_timeout_ms"] or 0 for m in silver["generation_members"]), default=0) or None
    assumed = []
    if not reactions:
        assumed.append(
            f"members notice a rebalance within the default heartbeat.interval.ms of {HEARTBEAT_MS:,}, because no "
            "rebalance of the group was long enough to measure it"
        )
    return Latencies(
        reactions=reactions,
        heartbeats=_heartbeats(delays, longest),
        sync_ms=tuple(g["sync_ms"] for g in generations if g["sync_ms"] is not None) or (SYNC_MS,),
        libraries=_libraries(silver),
        commit_ms=_commit_interval(silver),
        broker=broker,
        assumed=tuple(assumed),
    )


def _heartbeats(delays: list[int], session_ms: int | None) -> tuple[tuple[int, float], ...]:
    """Return possible heartbeat intervals with their probabilities, by Bayes' rule.

    Model: a delay is uniform in the interval, and members that synced together notice a rebalance together.
    """
    weights = {}
    for interval in HEARTBEATS_MS:
        if session_ms is not None and interval >= session_ms:
            continue
        prior = DEFAULT_WEIGHT if interval == HEARTBEAT_MS else 1
        fits = all(d <= interval * (1 + LATE) for d in delays)
        weights[interval] = prior * (HEARTBEATS_MS[0] / interval) ** len(delays) if fits else 0.0
    total = fsum(weights.values())
    if not total:
        # The delays exceed every heartbeat interval, so slow polls cause them and the interval does not matter.
        return ((min(HEARTBEAT_MS, (session_ms or HEARTBEAT_MS * 3) // 3), 1.0),)
    return tuple((interval, weight / total) for interval, weight in weights.items() if weight / total > 1e-6)


def _reactions(silver: Silver) -> Iterable[Reactions]:
    """Yield the reactions in every rebalance with a known start, if the group had members before."""
    stops: dict[Number, dict[str, int]] = defaultdict(dict)
    for stall in silver["stalls"]:
        stops[stall["incarnation"], stall["generation_id"]][stall["from_member_id"]] = stopped_at(stall)
    members: dict[Number, list[GenerationMemberRow]] = defaultdict(list)
    for row in silver["generation_members"]:
        members[number(row)].append(row)
    before: GenerationRow | None = None
    for g in sorted(silver["generations"], key=number):
        previous, before = before, g
        if previous is None or previous["is_empty"] or g["is_empty"] or g["incarnation"] != previous["incarnation"]:
            continue
        if g["group_protocol"] != GroupProtocol.CLASSIC or g["trigger"] == Trigger.COOPERATIVE_FOLLOWUP:
            continue
        had = {m["member_id"] for m in members[number(previous)]}
        stayed = [m for m in members[number(g)] if m["member_id"] in had]
        found = stops[number(g)]
        start = _begun(g, found)
        if start is None or not stayed:
            continue
        joined = g["joined_at"]
        noticed = [_noticed(m, found, g, joined) - start for m in stayed]
        if any(n is not None and n >= 0 for n in noticed):
            clean = tuple(sorted(max(0, n) for n in noticed))
            yield Reactions(noticed_ms=clean, rest_ms=max(0, joined - start - clean[-1]))


def _begun(g: Mapping[str, Any], found: Mapping[str, int]) -> int | None:
    if g["prepared_at"] is not None:
        return int(g["prepared_at"])
    left = [found[m] for m in g["left_member_ids"] or () if m in found]
    # The last commit of a member that left shows the start. A member that joined shows nothing.
    return min(left) if left and not g["joined_member_ids"] else None


def _noticed(member: Mapping[str, Any], found: Mapping[str, int], g: Mapping[str, Any], joined: int) -> int:
    if g["rebalance_mode"] == RebalanceMode.EAGER and member["member_id"] in found:
        return found[member["member_id"]]
    earliest, latest = member["rejoined_at_earliest"], member["rejoined_at_latest"]
    if earliest is None or latest is None:
        return joined
    return int(earliest + latest) // 2


def _libraries(silver: Silver) -> frozenset[ClientLibrary]:
    """Return the recognized client libraries of the newest generation that has members."""
    newest = max((number(m) for m in silver["generation_members"]), default=None)
    names = {m["client_library"] for m in silver["generation_members"] if number(m) == newest}
    return frozenset(ClientLibrary(name) for name in names if name not in (None, ClientLibrary.UNKNOWN))


def _commit_interval(silver: Silver) -> int:
    """Return the estimated interval of automatic commits in milliseconds.

    Members commit when they leave, and their previous commit is half an interval older on average.
    """
    spans = {
        s["from_member_id"]: stopped_at(s) - s["stopped_at_earliest"]
        for s in silver["stalls"]
        if s["to_member_id"] != s["from_member_id"] and s["stopped_at_earliest"] is not None
    }
    found = round(2 * median(spans.values())) if spans else 0
    # Two commits at nearly the same time show no interval, because both were made on leaving.
    return min(found, JOIN_EVERY_MS) if found >= SOON_MS else JOIN_EVERY_MS // 2
