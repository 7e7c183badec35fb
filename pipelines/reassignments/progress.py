"""Progress of a reassignment: bytes from the sizes of log directories, steps from leader and in-sync replicas.

`offset_lag` does not measure progress, because a follower's high watermark never exceeds its own log end
(`UnifiedLog`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipelines.reassignments.moves import Move
from pipelines.reassignments.statements import Brokers, ReplicaState
from schemas.states import ReassignmentPhase, ReassignmentState

SPEED_WINDOW_MS = 30_000
STALLED_AFTER_MS = 60_000
"""A reassignment without a new byte for this long is stalled. A throttle transfers bytes in bursts, but a minute is
longer than the pause between bursts.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The size of the partition's log by broker, from one response on log directories; `answered` are its brokers."""

    at: int
    answered: frozenset[int]
    by_broker: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Progress at `at` (ms). Byte counts are None if a size is not known."""

    at: int
    done: int | None
    total: int | None
    replica_state: ReplicaState | None

    @property
    def share(self) -> float | None:
        if self.done is None or self.total is None:
            return None
        return self.done / self.total if self.total else 1.0


def samples(
    move: Move, adding: Brokers, lists: Sequence[int], sizes: Sequence[Sizes], states: ReplicaStates
) -> list[Sample]:
    """Return one sample for each response during the reassignment: with sizes, or without if only the list is known."""
    end = move.ended_at
    spans = [at for at in lists if move.started_at <= at and (end is None or at < end)]
    times = {s.at: s for s in sizes if move.started_at <= s.at and (end is None or s.at < end)}
    sized = sorted(times)
    edges = [*spans, end if end is not None else max([*spans, *sized], default=0) + 1]
    alone = [a for a, b in pairwise(edges) if bisect_right(sized, a - 1) == bisect_right(sized, b - 1)]
    out = []
    for at in sorted({*sized, *alone}):
        now = states.at(at)
        done, total = _bytes(times.get(at), adding, now.leader if now else None)
        out.append(Sample(at=at, done=done, total=total, replica_state=now))
    return out


def _bytes(sizes: Sizes | None, adding: Brokers, leader: int | None) -> tuple[int | None, int | None]:
    """Return the bytes on the replicas that are being added, and the bytes that they will have in total.

    A broker that responded without a replica has no bytes yet. If the leader is not known, the size of the longest log
    of an existing replica is used, because in-sync replicas have the same content.
    """
    if sizes is None:
        return None, None
    in_place = [size for broker, size in sizes.by_broker.items() if broker not in adding]
    whole = sizes.by_broker.get(leader) if leader is not None else max(in_place, default=None)
    total = None if whole is None else whole * len(adding)
    if whole is None or not set(adding) <= sizes.answered:
        return None, total
    return sum(min(sizes.by_broker.get(broker, 0), whole) for broker in adding), total


class ReplicaStates:
    """Leader and in-sync replicas over time. Each entry combines the last known leader and the last known ISR."""

    def __init__(self, states: Sequence[ReplicaState]) -> None:
        self._known: list[ReplicaState] = []
        leader: int | None = None
        isr: Brokers | None = None
        for each in states:
            leader = each.leader if each.leader is not None else leader
            isr = each.isr if each.isr is not None else isr
            self._known.append(ReplicaState(at=each.at, leader=leader, isr=isr))
        self._times = [each.at for each in self._known]

    def at(self, at: int) -> ReplicaState | None:
        index = bisect_right(self._times, at)
        return self._known[index - 1] if index else None

    def between(self, start: int, end: int | None) -> list[ReplicaState]:
        """Return the state at `start` and each later change before `end`."""
        first = max(bisect_right(self._times, start) - 1, 0)
        return [each for each in self._known[first:] if end is None or each.at < end]


def phase(move: Move, adding: Brokers, states: ReplicaStates) -> ReassignmentPhase:
    """Return the furthest step that was observed. A completed reassignment passed all steps."""
    if move.outcome == ReassignmentState.COMPLETED:
        return ReassignmentPhase.COMPLETED
    seen = [_step(move, adding, each) for each in states.between(move.started_at, move.ended_at)]
    return max([ReassignmentPhase.REPLICAS_ADDED, *seen], key=list(ReassignmentPhase).index)


def _step(move: Move, adding: Brokers, now: ReplicaState) -> ReassignmentPhase:
    if now.isr is None or not set(adding) <= set(now.isr):
        return ReassignmentPhase.REPLICAS_ADDED
    if move.removing and not set(move.removing) & set(now.isr):
        return ReassignmentPhase.ISR_SHRUNK
    left = move.original is not None and move.original[0] in move.removing and now.leader in (move.target or ())
    return ReassignmentPhase.LEADER_MOVED if left else ReassignmentPhase.CAUGHT_UP


def speed(series: Sequence[Sample], window_ms: int | None) -> float | None:
    """Return bytes per second over the last `window_ms` milliseconds of the samples, or over all samples if None."""
    known = [s for s in series if s.done is not None]
    if window_ms is not None and known:
        known = [s for s in known if s.at >= known[-1].at - window_ms]
    if len(known) < 2 or known[-1].at == known[0].at:
        return None
    return ((known[-1].done or 0) - (known[0].done or 0)) * 1000 / (known[-1].at - known[0].at)


def stalled_since(series: Sequence[Sample]) -> int | None:
    """Return the time since which no byte was added, in milliseconds.

    Return None if that is less than `STALLED_AFTER_MS`, if no byte is missing, or if sizes are not known.
    """
    known = [s for s in series if s.done is not None and s.total is not None]
    if not known or known[-1].done == known[-1].total:
        return None
    since, most = known[0].at, known[0].done or 0
    for each in known:
        if (each.done or 0) > most:
            since, most = each.at, each.done or 0
    return since if known[-1].at - since >= STALLED_AFTER_MS else None
