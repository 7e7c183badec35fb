"""The state that the readers of a phase's records share: the results so far and the group's current state."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned.epochs import (
    NOTHING,
    Begun,
    ChangeKind,
    Epoch,
    EpochHistory,
    EpochMember,
    Happening,
    LossKind,
    Revoked,
)
from pipelines.silver.coordinator_assigned.snapshot import Snapshot
from pipelines.silver.coordinator_assigned.state import CoordinatorState
from pipelines.silver.coordinator_assigned.topics import TopicNames
from pipelines.silver.history import Record, Resource
from pipelines.silver.phases import PREFIXES, Phase
from pipelines.silver.timeline import Timeline
from schemas.states import GroupProtocol, GroupState


class EpochReader:
    """One pass over the records of a phase, in order; `batch` contains the records of one write.

    `fresh` and `leaving` are the results of this write so far. `matched` has the topics that each regular expression
    matches. `inherits`: the members come from a conversion of a classic group, and no epoch has followed yet. `late`
    are the revocations for an epoch that another one had followed. `is_unsettled`: the history resumes from a state
    that was not at rest.
    """

    def __init__(self, phase: Phase, names: TopicNames, timeline: Timeline) -> None:
        self.phase, self.names, self.timeline = phase, names, timeline
        self.prefix = next(prefix for prefix, p in PREFIXES.items() if p == phase.protocol)
        self.history = EpochHistory(incarnation=timeline.incarnation)
        self.coordinator = CoordinatorState()
        self.is_alive, self.inherits = timeline.is_alive, phase.is_taken_over
        self.matched: dict[str, frozenset[str]] = {}
        self.at: int | None = None
        """Time of the latest write, in milliseconds."""
        self.is_unsettled = False
        self.late: list[Revoked] = []
        self.begin_write([])

    def go_on(self, known: Snapshot, base: Epoch) -> None:
        """Resume from a stored state in the epoch `base`."""
        self.coordinator, self.matched, self.at = known.coordinator.copy(), dict(known.matched), known.at
        self.is_alive, self.inherits = True, False
        self.history.epochs.append(base)
        self.history.incarnation = known.incarnation
        self.is_unsettled = known.unsettled is not None
        state = GroupState.STABLE if known.unsettled is None else known.unsettled.state
        self.history.state, self.history.state_since = state, known.since

    def begin_write(self, batch: list[Record]) -> None:
        self.batch = batch
        self.fresh: list[Happening] = []
        self.leaving: list[Revoked] = []
        self.matched_before = self.matched

    def end_write(self) -> None:
        """Assign events without a new epoch to the group's current epoch, and update the group's state."""
        for happening in self.fresh:
            happening.number = self.coordinator.number if happening.number is None else happening.number
        record = self.batch[-1]
        state = self.coordinator.state(self.phase.protocol) if self.is_alive else GroupState.DEAD
        if state != self.history.state:
            self.history.state, self.history.state_since = state, record.at
        self.at = record.at

    @property
    def newest(self) -> Epoch | None:
        epochs = self.history.epochs
        return epochs[-1] if epochs and self.is_alive and self.coordinator.number is not None else None

    @property
    def is_conversion(self) -> bool:
        """Whether this write converts the group to the classic protocol and deletes all its records."""
        return self.phase.is_handed_on and self.batch[-1] is self.phase.records[-1]

    def begin_incarnation(self, record: Record) -> None:
        self.history.incarnation += 1
        self.coordinator.number = None
        self.history.moves.append(Begun(record=record, incarnation=self.history.incarnation))

    def happen(
        self, kind: ChangeKind, record: Record, *, number: int | None = None, member: EpochMember | None = None,
        before: EpochMember | None = None,
    ) -> None:  # fmt: skip
        happening = Happening(
            kind=kind,
            record=record,
            incarnation=self.history.incarnation,
            number=number,
            member=member,
            before=before,
        )
        self.fresh.append(happening)
        self.history.happenings.append(happening)

    def revoke(
        self,
        record: Record,
        kind: LossKind,
        member: EpochMember,
        resources: frozenset[Resource],
        number: int | None = None,
    ) -> Revoked | None:
        if self.phase.protocol == GroupProtocol.SHARE:
            resources = NOTHING  # resources of a share group have no owner
        if not resources and kind != LossKind.GONE:
            return None
        revoked = Revoked(
            record=record,
            incarnation=self.history.incarnation,
            number=number or self.coordinator.number or 0,
            kind=kind,
            member=member,
            resources=resources,
        )
        self.history.moves.append(revoked)
        if revoked.number < (self.coordinator.number or 0):
            self.late.append(revoked)
        return revoked
