"""Simulated clusters: ordinary days of many groups, and storms with the time at which each begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from testing.simulation.simulated_group import KINDS, Instance, Simulated

START = 1_780_000_000_000
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
BROKERS = 6
CLIENTS = ("named", "pods", "anonymous", "shared")
HOSTS = 40
MIX = [kind for kind, count in zip(KINDS, (7, 3, 2, 3, 3, 2), strict=True) for _ in range(count)]


@dataclass(frozen=True, kw_only=True)
class Label:
    """One storm as it was made. `third_at`: the time at which the third rebalance, or the third group, was hit."""

    kind: str
    groups: frozenset[str]
    started_at: int
    ended_at: int


class Cluster:
    """`groups` groups of all kinds for `days` days, with all events of ordinary operation."""

    def __init__(self, seed: int, *, groups: int, days: int) -> None:
        self.rng = Random(f"cluster {seed}")
        self.name, self.days = f"cluster-{seed}", days
        self.groups = [self._group(number) for number in range(groups)]
        self.habits = {
            g.group_id: g.rng.choices(("service", "autoscaled", "nightly"), (80, 12, 8))[0] for g in self.groups
        }
        self.labels: list[Label] = []
        for group in self.groups:
            self._begin(group)

    def _group(self, number: int) -> Simulated:
        rng = Random(f"{self.name} {number}")
        kind = MIX[number % len(MIX)]
        size = rng.choice((2, 2, 3, 3, 4, 6, 10))
        naming = rng.choices(CLIENTS, (40, 35, 10, 15))[0] if kind in ("eager", "cooperative", "kip848") else "named"
        instances = []
        for index in range(size):
            host = f"/10.0.{rng.randrange(4)}.{rng.randrange(HOSTS // 4)}"
            name = f"app{number}-{index}"
            if naming == "shared":
                name = "rdkafka"
            if naming == "anonymous":
                name = f"app{number}#"
            instances.append(
                Instance(
                    name=name,
                    host=host,
                    renames=naming in ("pods", "anonymous"),
                    threads=rng.choice((1, 2, 4)) if kind == "streams" else 1,
                )
            )
        partition = rng.randrange(50)
        return Simulated(
            group_id=f"group-{number:05}",
            kind=kind,
            rng=rng,
            instances=instances,
            is_logged=True,
            is_java=kind in ("streams", "connect") or rng.random() < 0.6,
            is_polite=rng.random() < 0.85,
            partition=partition,
            coordinator_id=partition % BROKERS + 1,
        )

    def _begin(self, group: Simulated) -> None:
        for index in range(len(group.instances)):
            group.do(START - HOUR + index * 2 * SECOND, "start", index)

    # --- ordinary days -----------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """Schedule the events of ordinary operation."""
        for group in self.groups:
            habit = self.habits[group.group_id]
            for day in range(self.days):
                begin = START + day * DAY
                if habit == "nightly":
                    self._nightly(group, begin)
                    continue
                self._deploys(group, begin)
                self._accidents(group, begin)
                if habit == "autoscaled":
                    self._autoscaling(group, begin)
        for day in range(self.days):
            self._cluster_day(START + day * DAY)

    def _deploys(self, group: Simulated, begin: int) -> None:
        rng = group.rng
        for _ in range(rng.choices((0, 1, 2, 3), (50, 30, 15, 5))[0]):
            at = begin + int(rng.uniform(6, 18) * HOUR)
            self._deploy(group, at)

    @staticmethod
    def _deploy(group: Simulated, at: int) -> None:
        rng = group.rng
        pause, away = int(rng.uniform(3, 60) * SECOND), int(rng.uniform(2, 40) * SECOND)
        if rng.random() < 0.15:  # all at once
            for index in range(len(group.instances)):
                group.restart(at + rng.randrange(3_000), index, away, moves=group.instances[index].renames)
            done = at + away
        else:
            done = group.deploy(at, pause_ms=pause, away_ms=away)
        if rng.random() < 0.1:  # rolled back
            group.deploy(done + int(rng.uniform(1, 10) * MINUTE), pause_ms=pause, away_ms=away)

    @staticmethod
    def _accidents(group: Simulated, begin: int) -> None:
        """Schedule single accidents at random times."""
        rng = group.rng
        for rate, what in ((0.3, "kill"), (0.2, "cut"), (0.2, "poll"), (0.1, "topic"), (0.05, "fail")):
            at = begin + rng.expovariate(rate) * DAY
            while at < begin + DAY:
                index = rng.randrange(len(group.instances))
                if what == "kill":
                    group.restart(int(at), index, int(rng.uniform(1, 90) * SECOND), killed=True)
                elif what == "cut":
                    group.do(int(at), "cut", index, rng.randrange(100, 5_000))
                elif what == "poll":
                    group.do(int(at), "poll_timeout", index, rng.randrange(1_000, 120_000))
                elif what == "topic":
                    group.do(int(at), "again", "leader_rejoined")
                else:
                    group.do(int(at), "fail")
                at += rng.expovariate(rate) * DAY

    @staticmethod
    def _autoscaling(group: Simulated, begin: int) -> None:
        """Schedule scaling out and in all day. Scaling in waits for 5 min after scaling out, like autoscalers."""
        rng = group.rng
        extra = max(1, len(group.instances) // 3)
        at = begin + rng.uniform(0, 1) * HOUR
        while at < begin + DAY - HOUR:
            for index in range(len(group.instances) - extra, len(group.instances)):
                group.do(int(at) + index * 200, "stop", index, not group.is_polite)
            at += rng.uniform(5, 60) * MINUTE
            for index in range(len(group.instances) - extra, len(group.instances)):
                group.do(int(at) + index * 200, "start", index, group.instances[index].renames)
            at += rng.uniform(5, 60) * MINUTE

    @staticmethod
    def _nightly(group: Simulated, begin: int) -> None:
        rng = group.rng
        at = begin + 2 * HOUR + rng.randrange(10 * MINUTE)
        for index in range(len(group.instances)):
            group.do(at + rng.randrange(5_000), "start", index)
            group.do(at + HOUR + rng.randrange(20 * MINUTE), "stop", index, not group.is_polite)

    def _cluster_day(self, begin: int) -> None:
        """Schedule node drains, a topic that matches several groups' patterns, and simultaneous deploys of
        applications.
        """
        rng = self.rng
        for _ in range(rng.randrange(3)):
            self._drain(begin + int(rng.uniform(0, 24) * HOUR))
        for _ in range(rng.randrange(3)):
            at = begin + int(rng.uniform(0, 24) * HOUR)
            for group in self.groups[:: max(1, len(self.groups) // 8)]:
                group.do(at + rng.randrange(5_000), "again", "metadata_changed")
        if rng.random() < 0.3:
            at = begin + int(rng.uniform(6, 18) * HOUR)
            for group in rng.sample(self.groups, max(3, len(self.groups) // 5)):
                self._deploy(group, at + rng.randrange(2 * MINUTE))
        if rng.random() < 0.5:
            at = begin + int(rng.uniform(6, 18) * HOUR)
            streams = [group for group in self.groups if group.kind == "streams"]
            for group in streams[:3]:
                self._deploy(group, at + rng.randrange(5_000))

    def _drain(self, at: int) -> None:
        """Stop every process of a host and start it on another."""
        host = f"/10.0.{self.rng.randrange(4)}.{self.rng.randrange(HOSTS // 4)}"
        for group in self.groups:
            for index, instance in enumerate(group.instances):
                if instance.host == host:
                    away = self.rng.randrange(5_000, 60_000)
                    group.restart(at + self.rng.randrange(20_000), index, away, moves=True)

    # --- storms ------------------------------------------------------------------------------------------------------

    def storm(self, kind: str, at: int) -> None:
        """Schedule one storm of a kind in STORMS, of groups that are up."""
        groups, end = STORMS[kind](self, at)
        found = frozenset(group.group_id for group in groups)
        self.labels.append(Label(kind=kind, groups=found, started_at=at, ended_at=end))

    def steady(self, *kinds: str, least: int = 2) -> Simulated:
        """Return a group that runs all day and has had no storm."""
        return self.rng.choice(
            [
                g
                for g in self.groups
                if g.kind in kinds
                and len(g.instances) >= least
                and self.habits[g.group_id] != "nightly"
                and not any(label.groups == {g.group_id} for label in self.labels)
            ]
        )


Made = tuple[list[Simulated], int]


def _times(rng: Random, at: int, least_s: float, most_s: float, count: int) -> Iterator[int]:
    for _ in range(count):
        yield at
        at += int(rng.uniform(least_s, most_s) * SECOND)


def _poll_loop(cluster: Cluster, at: int) -> Made:
    """One member exceeds max.poll.interval.ms of 5 min repeatedly, or several members exceed a shorter one."""
    group, rng = cluster.steady("eager", "cooperative", "kip848", "connect"), cluster.rng
    slow = rng.random() < 0.5
    end = at
    for end in _times(rng, at, 320 if slow else 20, 540 if slow else 120, rng.randrange(5, 20)):
        index = 0 if slow else rng.randrange(len(group.instances))
        group.do(end, "poll_timeout", index, rng.randrange(1_000, 15_000))
    return [group], end


def _expiries(cluster: Cluster, at: int) -> Made:
    """Members are expelled because of long pauses or short sessions, and come back at once."""
    group, rng = cluster.steady("eager", "cooperative", "kip848"), cluster.rng
    end = at
    for end in _times(rng, at, 15, 90, rng.randrange(12, 60)):
        group.do(end, "cut", rng.randrange(len(group.instances)), rng.randrange(50, 2_000))
    return [group], end


def _crash_loop(cluster: Cluster, at: int) -> Made:
    """One process dies soon after its start. Kubernetes waits 10, 20, 40 ... 300 s before each restart."""
    group, rng = cluster.steady("eager", "cooperative", "kip848", "streams"), cluster.rng
    index, wait, end = rng.randrange(len(group.instances)), 10, at
    for _ in range(rng.randrange(9, 15)):
        group.restart(end, index, wait * SECOND, killed=group.kind == "streams" or rng.random() < 0.5)
        end += wait * SECOND + rng.randrange(3_000, 50_000)
        wait = min(300, wait * 2)
    return [group], end


def _topic_churn(cluster: Cluster, at: int) -> Made:
    group, rng = cluster.steady("eager", "cooperative"), cluster.rng
    end = at
    for end in _times(rng, at, 15, 120, rng.randrange(8, 30)):
        group.do(end, "again", rng.choice(("leader_rejoined", "metadata_changed")))
    return [group], end


def _overtaken(cluster: Cluster, at: int) -> Made:
    group, rng = cluster.steady("eager", "cooperative", "connect"), cluster.rng
    end = at
    for end in _times(rng, at, 10, 120, rng.randrange(5, 20)):
        group.do(end, "fail")
    return [group], end


def _follow_ups(cluster: Cluster, at: int) -> Made:
    group, rng = cluster.steady("cooperative"), cluster.rng
    end = at
    for end in _times(rng, at, 3, 20, rng.randrange(10, 40)):
        group.do(end, "again", "cooperative_followup")
    return [group], end


def _slow_joiner(cluster: Cluster, at: int) -> Made:
    group, rng = cluster.steady("eager", "cooperative"), cluster.rng
    end = at
    for end in _times(rng, at, 60, 310, rng.randrange(6, 15)):
        group.do(end, "again", rng.choice(("rejoin_timeout", "sync_timeout")))
    return [group], end


def _static_loop(cluster: Cluster, at: int) -> Made:
    """A static member restarts within its session repeatedly: no rebalance, but its partitions stop."""
    group, rng = cluster.steady("static"), cluster.rng
    index, end = rng.randrange(len(group.instances)), at
    for end in _times(rng, at, 20, 200, rng.randrange(8, 20)):
        group.restart(end, index, rng.randrange(2_000, 15_000), killed=True)
    return [group], end


def _worker_flaps(cluster: Cluster, at: int) -> Made:
    group, rng = cluster.steady("connect"), cluster.rng
    index, end = rng.randrange(len(group.instances)), at
    for end in _times(rng, at, 60, 240, rng.randrange(8, 20)):
        group.restart(end, index, rng.randrange(2_000, 30_000), killed=rng.random() < 0.5)
    return [group], end


def _failover(cluster: Cluster, at: int) -> Made:
    """A broker is lost: its groups get another coordinator, which misses members or lets them join again."""
    rng = cluster.rng
    lost = rng.randrange(BROKERS) + 1
    hit = [g for g in cluster.groups if g.coordinator_id == lost]
    for group in hit:
        group.do(at, "load", lost % BROKERS + 1)
        begun = at + rng.randrange(1_000, 20_000)
        for index in range(len(group.instances)):
            group.do(begun + rng.randrange(2_000), "cut", index, rng.randrange(50, 3_000))
    return hit, at + MINUTE


def _network(cluster: Cluster, at: int) -> Made:
    """A rack loses its connection to the brokers for longer than a session."""
    rng = cluster.rng
    rack = f"/10.0.{rng.randrange(4)}."
    hit = []
    for group in cluster.groups:
        cut = [index for index, i in enumerate(group.instances) if i.host.startswith(rack)]
        if cut:
            hit.append(group)
        away = rng.randrange(1_000, 5 * MINUTE)
        for index in cut:
            group.do(at + rng.randrange(3_000), "cut", index, away + rng.randrange(3_000))
    return hit, at + 5 * MINUTE


def _pattern_churn(cluster: Cluster, at: int) -> Made:
    """Topics are created and deleted that match the patterns of several groups."""
    rng = cluster.rng
    hit = rng.sample([g for g in cluster.groups if g.kind in ("eager", "cooperative")], 5)
    end = at
    for end in _times(rng, at, 30, 150, rng.randrange(6, 15)):
        for group in hit:
            group.do(end + rng.randrange(5_000), "again", "metadata_changed")
    return hit, end


STORMS: dict[str, Callable[[Cluster, int], Made]] = {
    "poll timeouts": _poll_loop,
    "expired sessions": _expiries,
    "crash loop": _crash_loop,
    "topic changes": _topic_churn,
    "overtaken": _overtaken,
    "follow-ups": _follow_ups,
    "slow joiner": _slow_joiner,
    "static crash loop": _static_loop,
    "flapping worker": _worker_flaps,
    "failover": _failover,
    "network": _network,
    "patterns": _pattern_churn,
}
