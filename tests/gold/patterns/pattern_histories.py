"""A hand-made history of a group for each pattern that one group's records and lines show, and healthy histories."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.gold.patterns.group_patterns import pattern_rows
from pipelines.gold.window import window
from pipelines.silver.rows import silver_rows
from schemas.rows import PatternOfGroup
from tests.silver.handmade import (
    GROUP,
    START,
    Commit,
    Line,
    Record,
    broker_line,
    consumer,
    generation,
    history,
    member,
    member_id,
    worker,
    workers,
)

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
LOG, ALONE, POLL = "log", "topic", "poll"
ALL_IDS = "group_events", "generation_members", "generations", "stalls"


@dataclass(kw_only=True)
class Life:
    """Records, lines and commits of one group, in order of time."""

    records: list[Record] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)

    def silver(self, sources: str = LOG) -> dict[str, list[Any]]:
        """Silver rows of the group by the topic alone, with the log, or with polls that count the partitions."""
        described = history(self.records, self.lines if sources == LOG else (), self.commits)
        described = replace(described, partition_counts={"orders": 12, "audit": 4}) if sources == POLL else described
        return silver_rows(described, 10_000)

    def found(self, sources: str = LOG) -> dict[str, PatternOfGroup]:
        """By pattern."""
        return {row["pattern"]: row for row in pattern_rows(window(self.silver(sources), 0, 1 << 60), 0)}


def of(name: str, client: str | None = None, host: str = "/10.0.0.1", **fields: Any) -> Record:
    """A consumer of `orders` with some fields of its own; `topics` and `gives` replace what it reads."""
    topics, gives = fields.pop("topics", ["orders"]), fields.pop("gives", {"orders": [0]})
    made = consumer(name, [0]) | {"clientId": client or name, "clientHost": host} | fields
    made["subscription"] = made["subscription"] | {"topics": topics}
    return made | {"assignment": {"partitions": gives, "userData": None}}


def preparing(at: int, number: int, reason: str) -> Line:
    described = f"Preparing to rebalance group {GROUP} in state PreparingRebalance with old generation {number}"
    return broker_line(at, f"{described} (reason: {reason}).")


def joins(at: int, number: int, name: str) -> Line:
    added = f"Adding new member {member_id(name)} with group instance id null; client reason: not provided"
    return preparing(at, number, added)


def expires(at: int, number: int, name: str) -> list[Line]:
    return [
        broker_line(at, f"Member {member_id(name)} in group {GROUP} has failed, removing it from the group."),
        preparing(at, number, f"removing member {member_id(name)} on heartbeat expiration."),
    ]


def leaves(at: int, number: int, name: str, reason: str) -> list[Line]:
    departed = f"[Group {GROUP}] Member {member_id(name)} has left group through explicit `LeaveGroup` request"
    return [
        broker_line(at, f"{departed}; client reason: {reason}"),
        preparing(at, number, f"explicit `LeaveGroup` request for ({member_id(name)}) members."),
    ]


def rejoin_loop() -> Life:
    """Two members that are assigned the same every three seconds, because the leader rejoins."""
    life, pair = Life(), [of("a", gives={"orders": [0, 1]}), of("b", gives={"orders": [2]})]
    for number in range(1, 13):
        at = number * 3 * SECOND
        life.records.append(generation(number, at, pair))
        rejoined = f"Leader {member_id('a')} re-joining group during Stable; client reason: cached metadata has changed"
        life.lines.append(preparing(at - 200, number - 1, rejoined))
    return life


def expelling() -> Life:
    """Two members without a rebalance timeout: each join removes the other, which joins again at once."""
    life = Life()
    for number in range(1, 12):
        name, at = "ab"[number % 2], number * 2 * SECOND
        now = of(f"{name}{number}", f"app-{name}", rebalanceTimeout=-1)
        life.records.append(generation(number, at, [now]))
        life.lines.append(joins(at - 3, number - 1, f"{name}{number}"))
        if number > 1:
            before = member_id(f"{'ba'[number % 2]}{number - 1}")
            gone = f"Group {GROUP} removed dynamic members who haven't joined: [{before}]"
            life.lines.append(broker_line(at, gone))
    return life


def blocked() -> Life:
    """Three rebalances wait 57.5 s of 60 s for b, which commits at the end of each."""
    pair = [of("a", gives={"orders": [0]}), of("b", gives={"orders": [1]})]
    life = Life(records=[generation(1, 0, pair)])
    for number in range(2, 5):
        start, at = (number - 1) * 10 * MINUTE, (number - 1) * 10 * MINUTE + 57_500
        life.lines.append(preparing(start, number - 1, "cached metadata has changed"))
        life.commits += [(start - 500, 0, number), (start - 500, 1, number), (start + 100, 0, number + 100)]
        life.commits.append((at - 20, 1, number + 100))
        life.records.append(generation(number, at, pair))
    return life


def unowned(*, had_owner: bool = True) -> Life:
    """The leader a does not know `audit`, to which b subscribes; before, b led."""
    b = of("b", topics=["audit", "orders"], gives={"orders": [1]})
    first = generation(1, 0, [b | {"assignment": {"partitions": {"orders": [1], "audit": [0]}, "userData": None}}])
    now = [of("a", gives={"orders": [0]}), b]
    return Life(records=[*([first] if had_owner else []), generation(2, MINUTE, now, leader="a")])


def shared() -> Life:
    """Two applications that read other topics, with one group id."""
    both = [of("billing-1", topics=["orders"]), of("audit-1", topics=["audit"], gives={"audit": [0]})]
    return Life(records=[generation(1, 0, both), generation(2, 30 * SECOND, both)])


def connect_delay() -> Life:
    """w2 does not return within the delay."""
    ran = {"sink": [0, 1]}
    return Life(
        records=[
            workers(1, 0, worker("w1", ran={}, given={"sink": [0]}), worker("w2", ran={}, given={"sink": [1]})),
            workers(2, MINUTE, worker("w1", ran={"sink": [0]}, delay=5 * MINUTE)),
            workers(3, 6 * MINUTE + 100, worker("w1", ran={"sink": [0]}, given={"sink": [1]})),
            workers(4, 20 * MINUTE, worker("w1", ran=ran)),
        ]
    )


def never_closed(*, is_polite: bool = False) -> Life:
    """Each of three members is replaced by its next process; the old one stays until its session expires, or leaves."""
    names = ["app-0", "app-1", "app-2"]
    here = {name: f"{name}.0" for name in names}
    life, number = Life(), 1

    def record(at: int) -> Record:
        members = [of(here[n], n, gives={"orders": [i]}) for i, n in enumerate(names) if n in here]
        return generation(number, at, members)

    life.records.append(record(0))
    for turn, name in enumerate(names):
        gone = (turn + 1) * 2 * MINUTE
        last = here.pop(name)
        silent = SECOND if is_polite else 10 * SECOND
        life.commits += [(at, turn, at) for at in range(SECOND, gone - silent, SECOND)]
        life.lines += leaves(gone, number, last, "shutdown") if is_polite else expires(gone, number, last)
        number += 1
        life.records.append(record(gone + 300))
        here[name] = f"{name}.{turn + 1}"
        life.lines.append(joins(gone + 20 * SECOND, number, here[name]))
        number += 1
        life.records.append(record(gone + 20 * SECOND + 300))
    return life


def used_twice() -> Life:
    """Hosts 1 and 2 take the instance id `orders-0` from each other every 20 s; each takeover fences the other."""
    life = Life()
    for turn in range(8):
        at = turn * 20 * SECOND
        life.records.append(holds_the_id(turn, at))
        if turn:
            old, new = member_id(f"p{turn - 1}"), member_id(f"p{turn}")
            fenced = f"Static member {old} with instance id orders-0 is fenced by existing member {new}."
            life.lines.append(broker_line(at + 3 * SECOND, f"[GroupId {GROUP}] {fenced}"))
    return life


def holds_the_id(turn: int, at: int) -> Record:
    """A process on one of two hosts holds the instance id `orders-0` from `at` on."""
    holder = of(f"p{turn}", "app", f"/10.0.0.{1 + turn % 2}", groupInstanceId="orders-0")
    return generation(1, 0, [holder]) | {"at": START + at + 5}


def not_kept() -> Life:
    """One process after the other on one host, each with a new instance id."""
    life = Life()
    for turn in range(5):
        at = turn * 10 * MINUTE
        now = of(f"p{turn}", "app", groupInstanceId=f"app-{turn:08x}")
        life.records.append(generation(2 * turn + 1, at, [now]))
        if turn < 4:
            end = at + 9 * MINUTE
            life.records.append(generation(2 * turn + 2, end, [], leader=None))
            life.lines += expires(end, 2 * turn + 1, f"p{turn}")
    return life


def poll_timeouts() -> Life:
    """b leaves three times because it polled too late, and is back a second later."""
    life = Life(records=[generation(1, 0, [of("a"), of("b0", "b", gives={"orders": [1]})])])
    for turn in range(3):
        gone, number = (turn + 1) * 5 * MINUTE, 2 * turn + 1
        life.lines += leaves(gone, number, f"b{turn}", "consumer poll timeout has expired.")
        life.records.append(generation(number + 1, gone + 50, [of("a", gives={"orders": [0, 1]})]))
        life.lines.append(joins(gone + SECOND, number + 1, f"b{turn + 1}"))
        back = of(f"b{turn + 1}", "b", gives={"orders": [1]})
        life.records.append(generation(number + 2, gone + SECOND + 50, [of("a"), back]))
    return life


def refused() -> Life:
    """A member of the consumer protocol is refused twice."""
    why = f"Cannot upgrade classic group {GROUP} to consumer group because online upgrade is disabled by the policy."
    return Life(
        records=[generation(1, 0, [of("a")]), generation(2, HOUR, [of("a")])],
        lines=[broker_line(at, why) for at in (MINUTE, 2 * MINUTE)],
    )


def alternating() -> Life:
    """A third member that supports only `range` comes and goes; without it the group takes another assignor."""
    life = Life()
    for turn in range(6):
        pair = [of("a"), of("b", gives={"orders": [1]})]
        more = [of(f"c{turn}", "c", gives={"orders": [2]})] if turn % 2 else []
        record = generation(turn + 1, turn * MINUTE, [*pair, *more], protocol="range" if turn % 2 else "sticky")
        life.records.append(record)
    return life


def registries(number: int, at: int, elected: str | None, *names: str, error: int = 0) -> Record:
    identity = {"host": f"{elected}.example", "port": 8081, "scheme": "https"} if elected else None
    given = {"version": 1, "error": error, "master": member_id(elected) if elected else None}
    given |= {"master_identity": identity}
    members = [member(n, {"version": 1, "host": f"{n}.example", "port": 8081}, given) for n in names]
    return generation(number, at, members, protocol_type="sr", protocol="v0")


def without_leader(error: int = 1) -> Life:
    """Two registries with one URL."""
    first = registries(1, 0, "r1", "r1")
    return Life(records=[first, registries(2, MINUTE, None, "r1", "r2", error=error)])


def elected_again() -> Life:
    """Two registries lead in turns, every 20 s."""
    return Life(records=[registries(n, n * 20 * SECOND, f"r{n % 2}", "r0", "r1") for n in range(1, 10)])
