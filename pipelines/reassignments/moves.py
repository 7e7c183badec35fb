"""Statements on one partition to its reassignments: the start, the target and the outcome of each.

In Kafka's terms (KIP-455), the replicas of a partition during a reassignment are the target, followed by the replicas
to remove (`PartitionReassignmentReplicas`). The target is the replicas without `removing`. A cancellation restores the
replicas without `adding`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.reassignments.statements import RULES_MS, Brokers, Statement, StatementSource
from schemas.states import Evidence, ReassignmentState


@dataclass(slots=True, kw_only=True)
class Move:
    """One reassignment, with times in milliseconds.

    `is_logged` and `is_end_logged` mean that a log line gives the exact time of the start and of the end.
    """

    started_at: int
    started_at_earliest: int | None
    is_logged: bool
    original: Brokers | None
    target: Brokers | None
    replicas: Brokers
    adding: Brokers = ()
    removing: Brokers = ()
    is_hint: bool = False
    last_at: int = 0
    ended_at: int | None = None
    ended_at_earliest: int | None = None
    is_end_logged: bool = False
    outcome: ReassignmentState | None = None
    sources: set[StatementSource] = field(default_factory=set)

    @property
    def base(self) -> set[int]:
        """The replicas that a cancellation restores."""
        return set(self.replicas) - set(self.adding)

    @property
    def evidence(self) -> Evidence:
        if self.is_hint:
            return Evidence.INFERRED
        logged = self.is_logged and (self.ended_at is None or self.is_end_logged)
        return Evidence.OBSERVED if logged else Evidence.BOUNDED


def moves(statements: Iterable[Statement]) -> list[Move]:
    """Return the reassignments of one partition. The statements are in time order."""
    partition = _Partition()
    for statement in statements:
        partition.add(statement)
    return partition.moves


class _Partition:
    """The known state of one partition.

    `_settled`: the replicas while no reassignment is in progress. `_placed_at`: when they were last known to be these.
    `_idle_at`: when no reassignment was last known to be in progress.
    """

    def __init__(self) -> None:
        self.moves: list[Move] = []
        self._topic_id: str | None = None
        self._settled: Brokers | None = None
        self._placed_at: int | None = None
        self._idle_at: int | None = None
        self._running: Move | None = None
        self._unresolved: Move | None = None  # has ended, but its final replicas are not known yet

    def add(self, statement: Statement) -> None:
        if statement.topic_id is not None:
            if self._topic_id not in (None, statement.topic_id):
                self._recreated(statement)
            self._topic_id = statement.topic_id
        running = self._running
        adding = statement.adding if statement.adding is not None else running.adding if running else ()
        removing = statement.removing if statement.removing is not None else running.removing if running else ()
        if adding or removing:
            self._ongoing(statement, adding, removing)
        else:
            self._at_rest(statement)

    def _ongoing(self, statement: Statement, adding: Brokers, removing: Brokers) -> None:
        running = self._running
        replicas = statement.replicas or (running.replicas if running else None)
        if replicas is None:  # a leader's line contains neither the replicas nor the target
            return
        target = None if statement.is_hint else tuple(b for b in replicas if b not in removing)
        if self._unresolved:
            self._settle(self._unresolved, tuple(b for b in replicas if b not in adding), None, is_ordered=False)
        if running and set(running.replicas) == set(replicas) and running.target in (target, None):
            running.adding, running.removing, running.target = adding, removing, target
            running.is_hint = running.is_hint and statement.is_hint
        else:
            if running:
                self._end(running, statement)
                reached = set(replicas) - set(adding) == set(running.target or ()) != running.base
                running.outcome = ReassignmentState.COMPLETED if reached else ReassignmentState.CANCELLED
                self._settled = running.target if reached else running.original
                self._placed_at = running.ended_at_earliest
            running = self._begin(statement, replicas, target, adding, removing)
        running.last_at = statement.at
        running.sources.add(statement.source)

    def _begin(
        self, statement: Statement, replicas: Brokers, target: Brokers | None, adding: Brokers, removing: Brokers
    ) -> Move:
        before = self._running.ended_at_earliest if self._running else self._idle_at
        original = self._settled or statement.replicas_before
        is_logged = statement.source > StatementSource.POLL and (
            statement.source == StatementSource.CONTROLLER_LOG or self._settled is not None or self._running is not None
        )
        move = Move(
            started_at=statement.at,
            started_at_earliest=statement.at if is_logged else before,
            is_logged=is_logged,
            original=original or tuple(b for b in replicas if b not in adding),
            target=target,
            replicas=replicas,
            adding=adding,
            removing=removing,
            is_hint=statement.is_hint,
        )
        self.moves.append(move)
        self._running = move
        return move

    def _at_rest(self, statement: Statement) -> None:
        replicas = statement.replicas
        # The broker that describes a topic may not know the controller's last changes yet.
        is_description = statement.source == StatementSource.POLL and replicas is not None
        known_at = statement.at - RULES_MS if is_description else statement.at
        if self._running:
            running = self._running
            self._end(running, statement)
            self._running, self._unresolved = None, running
            if replicas is None and statement.source == StatementSource.CONTROLLER_LOG:
                replicas = running.replicas
        if self._unresolved and replicas is not None:
            self._settle(self._unresolved, replicas, known_at)
        elif replicas is not None:
            if self._settled is not None and self._settled != replicas:
                self._at_once(statement.at, self._placed_at, replicas, statement.source)
            self._settled = replicas
            self._placed_at = _later(self._placed_at, known_at)
        self._idle_at = _later(self._idle_at, known_at)

    def _end(self, move: Move, statement: Statement) -> None:
        move.is_end_logged = statement.source > StatementSource.POLL
        move.ended_at = statement.at
        move.ended_at_earliest = statement.at if move.is_end_logged else move.last_at
        move.last_at = statement.at
        move.sources.add(statement.source)

    def _settle(self, move: Move, replicas: Brokers, known_at: int | None, *, is_ordered: bool = True) -> None:
        """Set the outcome of a move from the replicas after it. Replicas that match no known state belong to another
        move.

        `known_at`: when the replicas were last known to be these; None if only the next move shows them.
        """
        self._unresolved = None
        known = set(replicas)
        if move.target is None:
            move.target = replicas
        if known == set(move.target) and known != set(move.original or ()):
            move.outcome = ReassignmentState.COMPLETED
        else:
            move.outcome = ReassignmentState.CANCELLED
            if known not in (move.base, set(move.original or ())) and move.ended_at is not None and is_ordered:
                self._settled = move.original
                self._at_once(move.ended_at, move.ended_at_earliest, replicas, max(move.sources))
        self._settled = replicas if is_ordered else move.original
        self._placed_at = _later(move.ended_at_earliest, known_at)

    def _at_once(self, at: int, earliest: int | None, replicas: Brokers, source: StatementSource) -> None:
        """Add a change that was complete when it was observed.

        Examples are a new order, fewer replicas, or a reassignment that finished between two polls.
        """
        before = self._settled or ()
        is_logged = source > StatementSource.POLL
        self.moves.append(
            Move(
                started_at=at,
                started_at_earliest=at if is_logged else earliest,
                is_logged=is_logged,
                original=self._settled,
                target=replicas,
                replicas=replicas,
                adding=tuple(b for b in replicas if b not in before),
                removing=tuple(b for b in before if b not in replicas),
                last_at=at,
                ended_at=at,
                ended_at_earliest=at if is_logged else earliest,
                is_end_logged=is_logged,
                outcome=ReassignmentState.COMPLETED,
                sources={source},
            )
        )

    def _recreated(self, statement: Statement) -> None:
        """Discard the known state, because another topic with the same name exists now."""
        if self._running:
            self._end(self._running, statement)
            self._running.outcome = ReassignmentState.CANCELLED
        self._running = self._unresolved = self._settled = self._placed_at = self._idle_at = None


def _later(one: int | None, other: int | None) -> int | None:
    return max((at for at in (one, other) if at is not None), default=None)
