"""What a group's own rebalances tell of its members: how soon they notice one, give up their work, and sync.

All of it is measured on this group alone; what it never showed is Kafka's default, and `Latencies.assumed` says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from statistics import median
from typing import Any

from pipelines.gold.churn import Churn, Outage, stopped_at
from pipelines.gold.instance_tracker import Number
from pipelines.gold.memberships import Silver, number
from schemas.rows import GenerationMemberRow, GenerationRow
from schemas.states import GroupEventKind, GroupProtocol, RebalanceMode, Trigger

HEARTBEAT_MS = 3_000
"""heartbeat.interval.ms by default, in Java and librdkafka."""

HEARTBEATS_MS = (250, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 10_000, 15_000, 20_000)
"""Values in use, of which the observed delays choose."""

DEFAULT_WEIGHT = 20
"""How much likelier the default is than any other value, before anything is observed."""

LATE = 0.1
"""A heartbeat later than its interval by this share was on its way or waiting for its thread."""

CONSUMER_HEARTBEAT_MS = 5_000
CONSUMER_SESSION_MS = 45_000
INITIAL_DELAY_MS = 3_000
SYNC_MS = 10

SOON_MS = 100
"""Nobody commits automatically more often."""

SLOW_MS = 250
"""From so long on, giving up partitions is a callback that takes its time and not only a commit."""

JOIN_EVERY_MS = 1_000
"""librdkafka joins at most once a second (`rkcg_join_intvl`), unless it has just given up partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reactions:
    """One rebalance: how long after its start each member that stayed had stopped or rejoined, and how long the last
    of them took from there to the end of the join phase.
    """

    noticed_ms: tuple[int, ...]
    rest_ms: int

    def noticing(self, random: Random, members: int) -> list[int]:
        """For so many members; everybody waits for the last, so none of the observed is drawn twice before all are."""
        whole, more = divmod(members, len(self.noticed_ms))
        out = [*self.noticed_ms] * whole + random.sample(self.noticed_ms, more)
        random.shuffle(out)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Broker settings as observed. None: not observed, the default is taken and said."""

    heartbeat_ms: int | None = None
    session_ms: int | None = None
    initial_delay_ms: int | None = None
    assignment_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Empty `reactions`: nothing measured. `heartbeats` are possible heartbeat.interval.ms with their weights."""

    reactions: tuple[Reactions, ...]
    heartbeats: tuple[tuple[int, float], ...]
    sync_ms: tuple[int, ...]
    is_librdkafka: bool
    commit_ms: int
    broker: BrokerSettings
    assumed: tuple[str, ...]

    def heartbeat(self, random: Random) -> int:
        values, weights = zip(*self.heartbeats, strict=True)
        return int(random.choices(values, weights)[0])

    @property
    def usual_heartbeat_ms(self) -> int:
        """The likeliest."""
        return max(self.heartbeats, key=lambda each: each[1])[0]

    def reaction(self, random: Random, heartbeat_ms: int) -> Reactions:
        """As in a rebalance of its own; else members that heartbeat in step, as they do once they synced together."""
        if self.reactions:
            return random.choice(self.reactions)
        return Reactions(noticed_ms=(random.randrange(heartbeat_ms),), rest_ms=SYNC_MS)

    def sync(self, random: Random) -> int:
        return random.choice(self.sync_ms)

    def rest(self, random: Random) -> int:
        """How long giving up partitions takes."""
        return random.choice(self.reactions).rest_ms if self.reactions else SYNC_MS


def with_callbacks(found: Churn, measured: Latencies) -> Churn:
    """A member that leaves gives up its work as slowly as those that stay, though its last commit may come after."""
    if not measured.reactions:
        return found
    usual = round(median(r.rest_ms for r in measured.reactions))
    if usual < SLOW_MS:
        return found

    def corrected(outage: Outage) -> Outage:
        early = outage.gone_at - usual
        if outage.how != GroupEventKind.LEFT or outage.gone_at - outage.stopped_at >= usual // 2:
            return outage
        return replace(outage, stopped_at=early, late_ms=usual // 2)

    return replace(found, outages=tuple(corrected(o) for o in found.outages))


def latencies(silver: Silver, broker: BrokerSettings) -> Latencies:
    """Measured on one group's silver rows, all in milliseconds."""
    generations = sorted(silver["generations"], key=number)
    reactions = tuple(_reactions(silver))
    delays = [max(r.noticed_ms) for r in reactions]
    longest = max((m["session_timeout_ms"] or 0 for m in silver["generation_members"]), default=0) or None
    is_librdkafka = _is_librdkafka(silver)
    assumed = []
    if not reactions:
        assumed.append(
            "no rebalance of its own was long enough to measure, so members are taken to notice one "
            f"within the default heartbeat.interval.ms of {HEARTBEAT_MS:,}"
        )
    return Latencies(
        reactions=reactions,
        heartbeats=_heartbeats(delays, longest),
        sync_ms=tuple(g["sync_ms"] for g in generations if g["sync_ms"] is not None) or (SYNC_MS,),
        is_librdkafka=is_librdkafka,
        commit_ms=_commit_interval(silver),
        broker=broker,
        assumed=tuple(assumed),
    )


def _heartbeats(delays: list[int], session_ms: int | None) -> tuple[tuple[int, float], ...]:
    """Bayes: a delay is uniform in the interval, and members that synced together notice together."""
    weights = {}
    for interval in HEARTBEATS_MS:
        if session_ms is not None and interval >= session_ms:
            continue
        prior = DEFAULT_WEIGHT if interval == HEARTBEAT_MS else 1
        fits = all(d <= interval * (1 + LATE) for d in delays)
        weights[interval] = prior * (HEARTBEATS_MS[0] / interval) ** len(delays) if fits else 0.0
    total = sum(weights.values())
    if not total:
        # Slower than any heartbeat: their polls hold them up, whatever the interval is.
        return ((min(HEARTBEAT_MS, (session_ms or HEARTBEAT_MS * 3) // 3), 1.0),)
    return tuple((interval, weight / total) for interval, weight in weights.items() if weight / total > 1e-6)


def _reactions(silver: Silver) -> Iterable[Reactions]:
    """Of every rebalance whose start is known, and before which the group had members."""
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
    # A member that left says by its last commit when; one that joined says nothing.
    return min(left) if left and not g["joined_member_ids"] else None


def _noticed(member: Mapping[str, Any], found: Mapping[str, int], g: Mapping[str, Any], joined: int) -> int:
    if g["rebalance_mode"] == RebalanceMode.EAGER and member["member_id"] in found:
        return found[member["member_id"]]
    earliest, latest = member["rejoined_at_earliest"], member["rejoined_at_latest"]
    if earliest is None or latest is None:
        return joined
    return int(earliest + latest) // 2


def _is_librdkafka(silver: Silver) -> bool:
    """By what librdkafka does not send: reasons for joining (KIP-800) and, of eager members, a generation."""
    generations = silver["generations"]
    if any(g["client_reason"] for g in generations):
        return False
    known = {(g["incarnation"], m) for g in generations for m in g["joined_member_ids"] or ()}
    eager = {number(g) for g in generations if g["rebalance_mode"] == RebalanceMode.EAGER}
    said = [
        m["previous_generation_id"]
        for m in silver["generation_members"]
        if number(m) in eager
        and (m["incarnation"], m["member_id"]) in known
        and m["previous_generation_id"] is not None
    ]
    if said:
        return all(generation < 0 for generation in said)
    return any(g["prepared_at"] is not None and g["trigger_reason"] for g in generations)


def _commit_interval(silver: Silver) -> int:
    """Of members that left: they commit on leaving, and the commit before is half an interval older on average."""
    spans = {
        s["from_member_id"]: stopped_at(s) - s["stopped_at_earliest"]
        for s in silver["stalls"]
        if s["to_member_id"] != s["from_member_id"] and s["stopped_at_earliest"] is not None
    }
    found = round(2 * median(spans.values())) if spans else 0
    # No space between two commits is no interval: both were made on leaving.
    return min(found, JOIN_EVERY_MS) if found >= SOON_MS else JOIN_EVERY_MS // 2
