"""Statements on one partition's replicas from all sources, in a common form, in time order and without contradictions.

A controller's line describes a change at its exact time. A broker's state-change line describes the same change a
little later. A poll describes a state before its response arrived, and the response may be out of date.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from schemas.controller_log import ControllerEventKind

Brokers = tuple[int, ...]

RULES_MS = 2_000
"""Within this many milliseconds of a log line, a lower source that contradicts or repeats the line is ignored, because
clocks and responses lag.
"""


class StatementSource(IntEnum):
    """The source of a statement. A higher value takes precedence."""

    POLL = 0
    BROKER_LOG = 1
    CONTROLLER_LOG = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The replicas of a partition at `at` (ms). None means unknown; in a controller's line it means unchanged.

    `is_hint`: no list of reassignments exists, but the partition has new replicas that are not in sync.
    """

    at: int
    source: StatementSource
    replicas: Brokers | None = None
    replicas_before: Brokers | None = None
    adding: Brokers | None = None
    removing: Brokers | None = None
    topic_id: str | None = None
    epoch: int | None = None
    is_hint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """Leader and in-sync replicas at `at` (ms). None means unknown."""

    at: int
    leader: int | None
    isr: Brokers | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledPartition:
    """The polls of one partition.

    `lists`: for every list of reassignments, (time, the partition's entry or None). `topics`: (time, topic id, the
    partition's entry in the topic's description).
    """

    lists: Sequence[tuple[int, dict[str, Any] | None]]
    topics: Sequence[tuple[int, str | None, dict[str, Any]]]


def statements(polled: PolledPartition, events: Iterable[dict[str, Any]]) -> list[Statement]:
    """Return all statements on the replicas in time order, without those that a higher source overrules."""
    logged = _logged(events)
    found = [*logged, *_listed(polled.lists), *_described(polled)]
    by_source = {source: sorted((s for s in logged if s.source == source), key=_time) for source in StatementSource}
    kept = [
        s for s in found if not any(_overruled(s, by_source[better]) for better in StatementSource if better > s.source)
    ]
    return sorted(kept, key=lambda s: (s.at, -s.source, not (s.adding or s.removing), s.replicas or ()))


def standings(polled: PolledPartition, events: Iterable[dict[str, Any]]) -> list[ReplicaState]:
    """Return all states of leader and in-sync replicas in time order. At equal times, polls come last."""
    logged = [
        ReplicaState(at=e["event_at"], leader=_leader(e), isr=_brokers(e["isr"]))
        for e in sorted(events, key=lambda e: (e["event_at"], e["partition_epoch"] or 0, repr(e["isr"])))
        if e["isr"] is not None or e["leader"] is not None
    ]
    described = [
        ReplicaState(at=at, leader=entry.get("leader"), isr=_brokers(entry.get("isr")))
        for at, _, entry in polled.topics
    ]
    return sorted([*logged, *described], key=lambda s: s.at)


def _overruled(statement: Statement, better: Sequence[Statement]) -> bool:
    """Return whether a statement of a higher source is near and takes precedence.

    Shortly after a line, a poll may describe the state before it. Shortly before a line, the same change may have
    another clock's time. If both statements have an epoch, the epochs decide instead.
    """
    first, last = (
        bisect_left(better, statement.at - RULES_MS, key=_time),
        bisect_right(better, statement.at + RULES_MS, key=_time),
    )
    near = [line for line in better[first:last] if None in (statement.epoch, line.epoch)]
    return any(line.at <= statement.at or _is_same(statement, line) for line in near)


def _is_same(statement: Statement, line: Statement) -> bool:
    if bool(statement.adding or statement.removing) != bool(line.adding or line.removing):
        return False
    return None in (statement.replicas, line.replicas) or statement.replicas == line.replicas


def _time(statement: Statement) -> int:
    return statement.at


def _logged(events: Iterable[dict[str, Any]]) -> list[Statement]:
    """Return one statement per epoch, at the time of its first line.

    A line with an older epoch is late and is ignored.
    """
    by_epoch: dict[tuple[str | None, Any], Statement] = {}
    for event in sorted(events, key=lambda e: (e["event_at"], -_source(e), e["source_id"], e["line_no"])):
        if event["event_kind"] == ControllerEventKind.REASSIGNMENT_CAUGHT_UP:
            continue
        statement = _line(event)
        mark = (
            statement.topic_id,
            statement.epoch if statement.epoch is not None else (statement.at, statement.replicas, statement.adding),
        )
        known = by_epoch.get(mark)
        by_epoch[mark] = statement if known is None else _merged(known, statement)
    out: list[Statement] = []
    newest: dict[str | None, int] = {}
    for statement in sorted(by_epoch.values(), key=lambda s: s.at):
        if statement.epoch is not None:
            if statement.epoch < newest.get(statement.topic_id, -1):
                continue
            newest[statement.topic_id] = statement.epoch
        out.append(statement)
    return out


def _merged(first: Statement, other: Statement) -> Statement:
    """Combine two lines of one epoch: the earlier time, the values of the higher source, and the other's for missing
    ones.
    """
    better, lesser = (other, first) if other.source > first.source else (first, other)
    names = ("replicas", "replicas_before", "adding", "removing")
    filled_in = {name: value for name in names if (value := getattr(better, name)) is not None}
    filled = {name: getattr(lesser, name) for name in names if name not in filled_in}
    return replace(better, at=first.at, **filled)


def _line(event: dict[str, Any]) -> Statement:
    return Statement(
        at=event["event_at"],
        source=_source(event),
        replicas=_brokers(event["replicas"]),
        replicas_before=_brokers(event["replicas_before"]),
        adding=_brokers(event["adding"]),
        removing=_brokers(event["removing"]),
        topic_id=event["topic_id"],
        epoch=event["partition_epoch"],
    )


def _source(event: dict[str, Any]) -> StatementSource:
    is_broker = event["event_kind"] == ControllerEventKind.REPLICA_STATE
    return StatementSource.BROKER_LOG if is_broker else StatementSource.CONTROLLER_LOG


def _leader(event: dict[str, Any]) -> int | None:
    """Return the leader in a line. `Leader T-P starts at …` is printed only by the leader itself."""
    if event["leader"] is None and event["event_kind"] == ControllerEventKind.REPLICA_STATE:
        return int(event["broker_id"]) if event["replicas"] is None else None
    return None if event["leader"] is None else int(event["leader"])


def _listed(lists: Iterable[tuple[int, dict[str, Any] | None]]) -> list[Statement]:
    return [
        Statement(at=at, source=StatementSource.POLL, adding=(), removing=())
        if entry is None
        else Statement(
            at=at,
            source=StatementSource.POLL,
            replicas=_brokers(entry["replicas"]),
            adding=_brokers(entry["adding"]) or (),
            removing=_brokers(entry["removing"]) or (),
        )
        for at, entry in lists
    ]


def _described(polled: PolledPartition) -> list[Statement]:
    """Return the statements of topic descriptions, which contain neither adding nor removing replicas.

    - Between two lists without the partition, its replicas are settled.
    - Next to a list with the partition, they are settled only if they differ from the full set of the reassignment.
    - Right after a list with the partition, the full set of the ended reassignment is ignored if a later description
      exists, because the controller learns of the end before other brokers.
    - Without any list, new replicas that are not in sync are a hint.
    """
    times = [at for at, _ in polled.lists]
    out: list[Statement] = []
    settled: Brokers | None = None
    last = max((at for at, _, _ in polled.topics), default=0)
    for at, topic_id, entry in polled.topics:
        replicas = _brokers(entry["replicas"]) or ()
        following = bisect_left(times, at)
        if at < last and set(replicas) in _just_ended(polled.lists[:following], at):
            continue
        statement = Statement(
            at=at, source=StatementSource.POLL, replicas=replicas, adding=(), removing=(), topic_id=topic_id
        )
        adjacent = [polled.lists[index][1] for index in (following - 1, following) if 0 <= index < len(times)]
        if any(entry is not None and set(entry["replicas"]) == set(replicas) for entry in adjacent):
            continue
        if all(entry is not None for entry in adjacent) and adjacent:
            continue  # one reassignment replaced another
        fresh = tuple(sorted(set(replicas) - set(settled or replicas)))
        if not adjacent and fresh and not set(fresh) <= set(entry.get("isr") or ()):
            statement = replace(statement, adding=fresh, is_hint=True)
        else:
            settled = replicas
        out.append(statement)
    return out


def _just_ended(lists: Sequence[tuple[int, dict[str, Any] | None]], at: int) -> list[set[int]]:
    """Return the full replica sets in the lists of the last `RULES_MS` before `at`, and in the list before these."""
    first = bisect_left(lists, at - RULES_MS, key=lambda polled: polled[0])
    return [set(entry["replicas"]) for _, entry in lists[max(0, first - 1) :] if entry is not None]


def _brokers(listed: Iterable[int] | None) -> Brokers | None:
    return None if listed is None else tuple(listed)
