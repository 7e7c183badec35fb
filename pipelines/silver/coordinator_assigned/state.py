"""The state of a modern group as a function of its records (`ConsumerGroup.maybeUpdateGroupState` and its kin)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pipelines.silver.coordinator_assigned.epochs import (
    CurrentAssignment,
    Epoch,
    EpochMember,
    Revoked,
    TargetAssignment,
)
from schemas.states import GroupProtocol, GroupState


@dataclass(slots=True, kw_only=True)
class Stand:
    """Where a group stands, as its coordinator has it in memory: what was written last of each member, by member id.

    `number` is its newest epoch, `assigned_epoch` the one its target assignment is for, which names the topics in
    `target_ids`. `behind` are the members that are not there yet, `owed` the epochs that a member has not reached, and
    `revoking` what it was told to give up. The topology's epoch and the one that was validated are Streams'; 4.1 does
    not write the latter.
    """

    seats: dict[str, EpochMember] = field(default_factory=dict)
    targets: dict[str, TargetAssignment] = field(default_factory=dict)
    target_ids: dict[str, list[str]] = field(default_factory=dict)
    currents: dict[str, CurrentAssignment] = field(default_factory=dict)
    behind: set[str] = field(default_factory=set)
    owed: dict[str, list[Epoch]] = field(default_factory=dict)
    revoking: dict[str, list[Revoked]] = field(default_factory=dict)
    number: int | None = None
    assigned_epoch: int | None = None
    metadata_hash: int | None = None
    topology: int | None = None
    validated: int | None = None

    def cleared(self) -> Stand:
        """Of a group that is gone, whose number may be given again."""
        return Stand(number=self.number)

    def at_rest(self) -> Stand:
        """As it is now; nobody owes or gives up anything."""
        return replace(
            self,
            seats=dict(self.seats),
            targets=dict(self.targets),
            target_ids=dict(self.target_ids),
            currents=dict(self.currents),
            behind=set(),
            owed={},
            revoking={},
        )

    def state(self, protocol: GroupProtocol) -> GroupState:
        if not self.seats:
            return GroupState.EMPTY
        if protocol == GroupProtocol.SHARE:
            return GroupState.STABLE
        if protocol == GroupProtocol.STREAMS and not self._is_ready:
            return GroupState.NOT_READY
        if (self.number or 0) > (self.assigned_epoch or 0):
            return GroupState.ASSIGNING
        return GroupState.RECONCILING if self.behind else GroupState.STABLE

    @property
    def _is_ready(self) -> bool:
        """The topology is validated; tasks are handed out of a valid one only."""
        if self.validated is None:
            return any(given.active for given in self.targets.values())
        return self.validated == self.topology
