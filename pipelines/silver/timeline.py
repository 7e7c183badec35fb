"""The state that is passed from phase to phase while one group's rows are computed."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.silver.carrying.points import Border, Carried, CarriedState
from pipelines.silver.carrying.valid_points import ResumePoint
from pipelines.silver.generations import Generation, ResumeState
from pipelines.silver.history import History, Position, Resource
from pipelines.silver.stalls import Ownership
from pipelines.silver.workers import WorkerLog
from schemas.rows import SilverOfGroup


@dataclass(slots=True, kw_only=True)
class Timeline:
    """The rows so far, and the state that a phase passes to the next one: owners, numbers and members.

    `base` is the point from which the history resumes; rows up to `base_at` stay unchanged. `carried` is the state
    there of a group that was not at rest. `number` is None until a number is known. `members` are those of the last
    generation or epoch of the current incarnation. `owned_at` has the position of the last generation that assigned
    the resource to its `last_owner`. `borders` are the states at possible resume points, by the position of the
    generation that follows, and `epoch_borders` those of groups whose coordinator assigns. `generations` are all
    classic generations by position.
    """

    history: History
    base: ResumeState | None
    quiet_ms: int
    ownership: Ownership
    workers: WorkerLog
    out: SilverOfGroup
    incarnation: int = 0
    number: int | None = None
    is_alive: bool = False
    members: frozenset[str] = frozenset()
    last_owner: dict[Resource, str] = field(default_factory=dict)
    owned_at: dict[Resource, Position] = field(default_factory=dict)
    bases: dict[Position, ResumePoint] = field(default_factory=dict)
    carried: Carried | None = None
    borders: dict[Position, Border] = field(default_factory=dict)
    epoch_borders: dict[Position, CarriedState] = field(default_factory=dict)
    generations: dict[Position, Generation] = field(default_factory=dict)
    base_at: int | None = None
    has_begun: bool = False

    @property
    def is_state_of_coordinator(self) -> bool:
        """Whether the history resumes from the state of a coordinator that assigns."""
        is_carried = self.carried is not None and self.carried.is_of_coordinator
        return is_carried or (self.base is not None and self.base.state is not None)

    @classmethod
    def of(cls, history: History, base: ResumeState | None, quiet_ms: int, carried: Carried | None = None) -> Timeline:
        return cls(
            carried=carried,
            history=history,
            base=base,
            quiet_ms=quiet_ms,
            ownership=Ownership(history.commits),
            workers=WorkerLog(history.worker_lines),
            out={
                "generations": [],
                "generation_members": [],
                "stalls": [],
                "group_events": [],
                "groups": [],
                "rebalances": [],
                "resume_points": [],
            },
            incarnation=base.incarnation if base else 0,
        )
