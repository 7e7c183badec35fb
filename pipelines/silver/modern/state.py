"""The state of a modern group as a function of its records (`ConsumerGroup.maybeUpdateGroupState` and its kin)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipelines.silver.modern.epochs import Given
from schemas.states import GroupProtocol, GroupState


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where a group stands: its newest epoch, the one its target assignment is for, and the members not there yet.

    The topology's epoch and the one that was validated are Streams'; 4.1 does not write the latter.
    """

    members: Collection[str]
    epoch: int
    assigned_epoch: int
    behind: Collection[str]
    targets: Mapping[str, Given]
    topology: int | None
    validated: int | None

    def state(self, protocol: GroupProtocol) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if protocol == GroupProtocol.SHARE:
            return GroupState.STABLE
        if protocol == GroupProtocol.STREAMS and not self._is_ready:
            return GroupState.NOT_READY
        if self.epoch > self.assigned_epoch:
            return GroupState.ASSIGNING
        return GroupState.RECONCILING if self.behind else GroupState.STABLE

    @property
    def _is_ready(self) -> bool:
        """The topology is validated; tasks are handed out of a valid one only."""
        if self.validated is None:
            return any(given.active for given in self.targets.values())
        return self.validated == self.topology
