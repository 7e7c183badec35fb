"""Rows of `reassignments` and `reassignment_samples` of one cluster, from polls and log lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from pipelines.reassignments.moves import Move, moves
from pipelines.reassignments.progress import (
    SPEED_WINDOW_MS,
    ReplicaStates,
    Sample,
    Sizes,
    phase,
    samples,
    speed,
    stalled_since,
)
from pipelines.reassignments.statements import Brokers, PolledPartition, standings, statements
from schemas.rows import ReassignmentRow, ReassignmentRows, ReassignmentSampleRow
from schemas.states import ReassignmentState

Row = dict[str, Any]
Key = tuple[str, int]

KINDS = ("reassignments", "topic", "log_dirs")
"""Kinds of `admin_observations` that describe reassignments. A failed call is ignored, so the time bounds get wider."""


def reassignment_rows(cluster: str, observations: Iterable[Row], events: Iterable[Row]) -> ReassignmentRows:
    """Return the rows of both tables. The result does not depend on the order or repetition of the input.

    Args:
        cluster: name of the cluster.
        observations: rows of `admin_observations` with `observed_at` in ms and `body` decoded.
        events: rows of `coordinator_events` with `event_at` in ms; lines without a partition are ignored.
    """
    seen = _Seen.of(observations)
    lines: dict[Key, list[Row]] = defaultdict(list)
    for event in events:
        if event["topic"] is not None and event["partition"] is not None:
            lines[event["topic"], event["partition"]].append(event)
    out: ReassignmentRows = {"reassignments": [], "reassignment_samples": []}
    for key in sorted(seen.moving() | _moving(lines)):
        for move, following in _with_next(_moves(seen, key, lines[key])):
            row, series = _row(cluster, seen, key, lines[key], move, following)
            out["reassignments"].append(row)
            out["reassignment_samples"] += _sample_rows(cluster, key, series)
    return out


@dataclass(slots=True, kw_only=True)
class _Seen:
    """The polls of a cluster in time order. A response that was delivered more than once counts once."""

    lists: list[tuple[int, dict[Key, Row]]] = field(default_factory=list)
    topics: dict[str, list[tuple[int, str | None, dict[int, Row]]]] = field(default_factory=dict)
    sizes: list[tuple[int, frozenset[int], dict[Key, dict[int, int]]]] = field(default_factory=list)

    @classmethod
    def of(cls, observations: Iterable[Row]) -> _Seen:
        lists: dict[int, dict[Key, Row]] = {}
        topics: dict[str, dict[int, tuple[str | None, dict[int, Row]]]] = defaultdict(dict)
        sizes: dict[int, tuple[frozenset[int], dict[Key, dict[int, int]]]] = {}
        for seen in sorted(observations, key=lambda o: (o["observed_at"], o["kind"], repr(o["body"]))):
            at, body = seen["observed_at"], seen["body"]
            match seen["kind"]:
                case "reassignments":
                    lists[at] = {(each["topic"], each["partition"]): each for each in body["ongoing"]}
                case "topic":
                    parts = {each["partition"]: each for each in body["partitions"]}
                    topics[body["topic"]][at] = (body.get("topic_id"), parts)
                case "log_dirs":
                    sizes[at] = frozenset(body["brokers"]), _sizes(body["replicas"])
        return cls(
            lists=sorted(lists.items(), key=lambda each: each[0]),
            topics={topic: [(at, *seen) for at, seen in sorted(polls.items())] for topic, polls in topics.items()},
            sizes=[(at, *seen) for at, seen in sorted(sizes.items(), key=lambda each: each[0])],
        )

    def moving(self) -> set[Key]:
        """Return partitions that were listed, or whose replicas differ between two descriptions."""
        found = {key for _, listed in self.lists for key in listed}
        for topic, described in self.topics.items():
            for (_, _, before), (_, _, after) in pairwise(described):
                found |= {
                    (topic, number)
                    for number in before.keys() & after.keys()
                    if before[number]["replicas"] != after[number]["replicas"]
                }
        return found

    def of_partition(self, key: Key) -> PolledPartition:
        topic, number = key
        described = self.topics.get(topic, ())
        return PolledPartition(
            lists=[(at, listed.get(key)) for at, listed in self.lists],
            topics=[(at, topic_id, parts[number]) for at, topic_id, parts in described if number in parts],
        )

    def sizes_of(self, key: Key) -> list[Sizes]:
        return [Sizes(at=at, answered=answered, by_broker=logs.get(key, {})) for at, answered, logs in self.sizes]


def _sizes(replicas: Iterable[Row]) -> dict[Key, dict[int, int]]:
    """Return log sizes by partition and broker.

    Future replicas are ignored, because they move between directories of one broker.
    """
    out: dict[Key, dict[int, int]] = defaultdict(dict)
    for each in replicas:
        if not each.get("future"):
            out[each["topic"], each["partition"]][each["broker"]] = each["size"]
    return out


def _moving(lines: dict[Key, list[Row]]) -> set[Key]:
    """Return partitions with a line that contains a reassignment, or with lines that contain different replicas."""
    return {
        key
        for key, of_partition in lines.items()
        if any(e["adding"] or e["removing"] for e in of_partition)
        or len({tuple(e["replicas"]) for e in of_partition if e["replicas"] is not None}) > 1
    }


def _moves(seen: _Seen, key: Key, lines: Sequence[Row]) -> list[Move]:
    return moves(statements(seen.of_partition(key), lines))


def _with_next(found: Sequence[Move]) -> list[tuple[Move, Move | None]]:
    return [(move, found[at + 1] if at + 1 < len(found) else None) for at, move in enumerate(found)]


def _row(
    cluster: str, seen: _Seen, key: Key, lines: Sequence[Row], move: Move, following: Move | None
) -> tuple[ReassignmentRow, list[Sample]]:
    polled = seen.of_partition(key)
    states = ReplicaStates(standings(polled, lines))
    adding, removing = _difference(move)
    listed = [at for at, entry in polled.lists if entry is not None]
    series = samples(move, adding, listed, seen.sizes_of(key), states) if adding and not _at_once(move) else []
    last = _last(states, move, following)
    progress = _progress(move, adding, series)
    row: ReassignmentRow = {
        "cluster": cluster,
        "topic": key[0],
        "partition": key[1],
        "started_at": move.started_at,
        "started_at_earliest": move.started_at_earliest,
        "original_replicas": _listed(move.original),
        "target_replicas": _listed(move.target),
        "replicas": list(move.target or move.replicas)
        if move.outcome == ReassignmentState.COMPLETED
        else list(move.replicas),
        "adding": list(adding),
        "removing": list(removing),
        "leader": last.leader if last else None,
        "isr": _listed(last.isr) if last else None,
        "phase": phase(move, adding, states).value,
        "last_observed_at": max([move.last_at, *(s.at for s in series)]),
        "completed_at": move.ended_at,
        "completed_at_earliest": move.ended_at_earliest,
        "sources": sorted(source.name.lower() for source in move.sources),
        "evidence": move.evidence.value,
        "state": progress.state.value if progress.state else None,
        "bytes_total": progress.total,
        "bytes_done": progress.done,
        "progress": progress.share,
        "bytes_per_second": progress.pace,
        "eta_at": progress.eta_at,
        "stalled_since_at": progress.stalled_since,
    }
    return row, series


class _Progress(NamedTuple):
    """Sizes in bytes, `share` from 0 to 1, `pace` in bytes per second, times in milliseconds. None means unknown."""

    state: ReassignmentState | None
    total: int | None
    done: int | None
    share: float | None
    pace: float | None
    eta_at: int | None
    stalled_since: int | None


def _at_once(move: Move) -> bool:
    return move.ended_at == move.started_at


def _difference(move: Move) -> tuple[Brokers, Brokers]:
    """Return the added and the removed replicas, relative to the original replicas.

    If a reassignment replaces another one, some of its target replicas may exist at its start.
    """
    if move.original is None or move.target is None:
        return move.adding, move.removing
    return (
        tuple(sorted(set(move.target) - set(move.original))),
        tuple(sorted(set(move.original) - set(move.target))),
    )


def _last(states: ReplicaStates, move: Move, following: Move | None) -> Any:
    """Return the last known state of a move in progress, or the first state after the end of a completed one."""
    if move.ended_at is None:
        known = states.between(move.started_at, None)
        return known[-1] if known else None
    end = following.started_at if following else None
    after = [each for each in states.between(move.ended_at, end) if each.at >= move.ended_at]
    return after[0] if after else states.at(move.ended_at)


def _progress(move: Move, adding: Brokers, series: Sequence[Sample]) -> _Progress:
    sized = [s for s in series if s.total is not None]
    total = sized[-1].total if sized else None if adding else 0
    done = sized[-1].done if sized else None if adding else 0
    since = None
    state = move.outcome
    fraction = sized[-1].share if sized else None
    if state == ReassignmentState.COMPLETED:
        done, fraction = total, 1.0
    elif move.ended_at is None:
        since = stalled_since(series)
        state = ReassignmentState.RUNNING if since is None else ReassignmentState.STALLED
    pace = speed(series, SPEED_WINDOW_MS if move.ended_at is None else None)
    eta = None
    if state == ReassignmentState.RUNNING and pace and pace > 0 and total is not None and done is not None:
        eta = sized[-1].at + round((total - done) * 1000 / pace)
    return _Progress(state, total, done, fraction, pace, eta, since)


def _sample_rows(cluster: str, key: Key, series: Sequence[Sample]) -> list[ReassignmentSampleRow]:
    out: list[ReassignmentSampleRow] = []
    for before, each in zip([None, *series], series, strict=False):
        out.append(
            {
                "cluster": cluster,
                "topic": key[0],
                "partition": key[1],
                "observed_at": each.at,
                "bytes_done": each.done,
                "bytes_total": each.total,
                "progress": each.share,
                "bytes_per_second": speed([before, each], None) if before else None,
                "isr": _listed(each.replica_state.isr) if each.replica_state else None,
                "leader": each.replica_state.leader if each.replica_state else None,
            }
        )
    return out


def _listed(brokers: Brokers | None) -> list[int] | None:
    return None if brokers is None else list(brokers)
