"""The state that the readers of a phase's records share: the results so far and the group's current state."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned.epochs import (
    NOTHING,
    Begun,
    Epoch,
    EpochHistory,
    EpochMember,
    Happening,
    How,
    Revoked,
    What,
)
from pipelines.silver.coordinator_assigned.snapshot import Snapshot
from pipelines.silver.coordinator_assigned.state import Stand
from pipelines.silver.coordinator_assigned.topics import TopicNames
from pipelines.silver.history import Record, Resource
from pipelines.silver.phases import PREFIXES, Phase
from pipelines.silver.timeline import Timeline
from schemas.states import GroupProtocol, GroupState


class EpochReader:
    """One pass over the records of a phase, in order; `batch` contains the records of one write.

    `fresh` and `leaving` are the results of this write so far. `matched` has the topics that each regular expression
    matches. `inherits`: the members come from a conversion of a classic group, and no epoch has followed yet.
    """

    def __init__(self, phase: Phase, names: TopicNames, timeline: Timeline) -> None:
        self.phase, self.names, self.timeline = phase, names, timeline
        self.prefix = next(prefix for prefix, p in PREFIXES.items() if p == phase.protocol)
        self.course = EpochHistory(incarnation=timeline.incarnation)
        self.stand = Stand()
        self.is_alive, self.inherits = timeline.is_alive, phase.is_taken_over
        self.matched: dict[str, frozenset[str]] = {}
        self.at: int | None = None
        """Time of the latest write, in milliseconds."""
        self.begin_write([])

    def go_on(self, known: Snapshot, base: Epoch) -> None:
        """Resume from a quiescent point in the epoch `base`."""
        self.stand, self.matched, self.at = known.stand.at_rest(), dict(known.matched), known.at
        self.is_alive, self.inherits = True, False
        self.course.epochs.append(base)
        self.course.incarnation = known.incarnation
        self.course.state, self.course.state_since = GroupState.STABLE, known.since

    def begin_write(self, batch: list[Record]) -> None:
        self.batch = batch
        self.fresh: list[Happening] = []
        self.leaving: list[Revoked] = []
        self.matched_before = self.matched

    def end_write(self) -> None:
        """Assign events without a new epoch to the group's current epoch, and update the group's state."""
        for happening in self.fresh:
            happening.number = self.stand.number if happening.number is None else happening.number
        record = self.batch[-1]
        state = self.stand.state(self.phase.protocol) if self.is_alive else GroupState.DEAD
        if state != self.course.state:
            self.course.state, self.course.state_since = state, record.at
        self.at = record.at

    @property
    def newest(self) -> Epoch | None:
        epochs = self.course.epochs
        return epochs[-1] if epochs and self.is_alive and self.stand.number is not None else None

    @property
    def is_conversion(self) -> bool:
        """Whether this write converts the group to the classic protocol and deletes all its records."""
        return self.phase.is_handed_on and self.batch[-1] is self.phase.records[-1]

    def begin_incarnation(self, record: Record) -> None:
        self.course.incarnation += 1
        self.stand.number = None
        self.course.moves.append(Begun(record=record, incarnation=self.course.incarnation))

    def happen(
        self, what: What, record: Record, *, number: int | None = None, seat: EpochMember | None = None,
        before: EpochMember | None = None,
    ) -> None:  # fmt: skip
        happening = Happening(
            what=what,
            record=record,
            incarnation=self.course.incarnation,
            number=number,
            seat=seat,
            before=before,
        )
        self.fresh.append(happening)
        self.course.happenings.append(happening)

    def take(
        self, record: Record, how: How, seat: EpochMember, resources: frozenset[Resource], number: int | None = None
    ) -> Revoked | None:
        if self.phase.protocol == GroupProtocol.SHARE:
            resources = NOTHING  # resources of a share group have no owner
        if not resources and how != How.GONE:
            return None
        taken = Revoked(
            record=record,
            incarnation=self.course.incarnation,
            number=number or self.stand.number or 0,
            how=how,
            seat=seat,
            resources=resources,
        )
        self.course.moves.append(taken)
        return taken
