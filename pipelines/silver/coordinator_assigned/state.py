"""The state of a group whose coordinator assigns, as a function of its records (`ConsumerGroup.maybeUpdateGroupState`
and the methods of the other group types).
"""

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
class CoordinatorState:
    """The state of a group as in its coordinator's memory: the last values of each member, by member id.

    `number` is the newest epoch. `assigned_epoch` is the epoch of the target assignment, which contains the topics in
    `target_ids`. `behind` are the members that have not reached it, `owed` the epochs that a member has not reached,
    and `revoking` the resources that it must give up. `topology` and `validated` are the epochs of the topology and of
    the last validated one, for Streams only; 4.1 does not write the latter.
    """

    members: dict[str, EpochMember] = field(default_factory=dict)
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

    def cleared(self) -> CoordinatorState:
        """Return the state after the group was deleted; its number may be used again."""
        return CoordinatorState(number=self.number)

    def copy(self) -> CoordinatorState:
        """Return a copy without pending epochs and revocations."""
        return replace(
            self,
            members=dict(self.members),
            targets=dict(self.targets),
            target_ids=dict(self.target_ids),
            currents=dict(self.currents),
            behind=set(self.behind),
            owed={},
            revoking={},
        )

    def state(self, protocol: GroupProtocol) -> GroupState:
        if not self.members:
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
        """Whether the topology is validated. Tasks are assigned only from a valid topology."""
        if self.validated is None:
            return any(target.active for target in self.targets.values())
        return self.validated == self.topology
