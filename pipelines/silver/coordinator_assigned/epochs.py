"""The content of one phase as dataclasses: epochs, members, and assignments.

KIP-848 types 3 to 8 and 16, KIP-932 types 10 to 14 and KIP-1071 types 17 to 23 have one pattern
(`GroupMetadataManager.java`). A heartbeat writes with one timestamp: [member] → [group epoch] → [target assignment] →
[current assignment of the member].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipelines.silver.history import Position, Record, Resource
from schemas.states import GroupState

PAUSED_EPOCH = -2
"""`ConsumerGroupHeartbeatRequest.LEAVE_GROUP_STATIC_MEMBER_EPOCH`: a static member left for now and keeps its work."""

FIRST_EPOCHS = (1, 2)
"""Possible numbers of the first epoch that a new group stores: 1 before 4.3 (streams groups: before 4.2), otherwise 2.
"""

NOTHING: frozenset[Resource] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMember:
    """One member in its metadata record. `session_timeout_ms` is set only for a member with the classic protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int | None
    session_timeout_ms: int | None
    topics: frozenset[str]
    regex: str | None
    assignor: str | None
    is_classic: bool
    owns_on_rejoin: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAssignment:
    """The target assignment of one member. Only Streams members have standby and warm-up tasks."""

    active: frozenset[Resource] = NOTHING
    standby: frozenset[Resource] = NOTHING
    warmup: frozenset[Resource] = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAssignment:
    """The current assignment of one member: its epoch, its resources, and the resources that it must give up."""

    epoch: int
    is_done: bool
    assigned: frozenset[Resource]
    pending: frozenset[Resource]


class ChangeKind(StrEnum):
    """The types of changes: of a member, of the consumed topics, or of the group."""

    JOINED = "joined"
    GONE = "gone"
    PAUSED = "paused"
    RETURNED = "returned"
    CHANGED = "changed"
    REGEX = "regex"
    METADATA = "metadata"
    CREATED = "created"
    EMPTY = "empty"
    DEAD = "dead"
    UPGRADED = "upgraded"
    DOWNGRADED = "downgraded"


@dataclass(slots=True, kw_only=True)
class Happening:
    """One change. `number` is the epoch that it caused or in which it occurred.

    `member` is the member after the change, `before` the member that it replaced. `is_by_then`: the change occurred
    before the known history.
    """

    kind: ChangeKind
    record: Record
    incarnation: int
    number: int | None = None
    member: EpochMember | None = None
    before: EpochMember | None = None
    is_by_then: bool = False


@dataclass(slots=True, kw_only=True)
class Epoch:
    """One group epoch. `is_repeated` marks the record that repeats a converted generation's number and has no row.

    `members` are those by id while the epoch was the newest, including static replacements. `began` and `ended` are
    the times at which an id was added or removed within the epoch. `owned` has the members' assignments at the bump.
    `matched` has the topics that regular expressions matched at its end. `is_base`: the history resumes after it, and
    its rows stay unchanged.
    """

    record: Record
    incarnation: int
    number: int
    previous: Epoch | None
    is_repeated: bool
    members: dict[str, EpochMember]
    owned: dict[str, CurrentAssignment]
    why: list[Happening]
    before: dict[str, EpochMember]
    began: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    target: dict[str, TargetAssignment] | None = None
    synced_at: int | None = None
    completed_at: int | None = None
    overtaken_at: int | None = None
    reconciled: dict[str, int] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    matched: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_base: bool = False

    @property
    def position(self) -> Position:
        return self.record.position

    @property
    def joined_at(self) -> int:
        return self.record.at or 0

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def final(self) -> dict[str, EpochMember]:
        """Return the members at the end of the epoch."""
        return {m: member for m, member in self.members.items() if m not in self.ended}

    def complete(self, record: Record) -> None:
        """Mark the epoch as completed at this record if all members have reached it and it was not completed before."""
        if self.target is not None and not self.waiting and self.completed_at is None:
            self.completed_at = record.at or self.joined_at

    @property
    def owners(self) -> dict[Resource, str]:
        """Return resource → the member that owns it in the target assignment."""
        return {r: m for m, target in (self.target or {}).items() for r in target.active}


class LossKind(StrEnum):
    """How a member lost a resource."""

    REVOKED = "revoked"
    GONE = "gone"
    PAUSED = "paused"
    REPLACED = "replaced"
    REJOINED = "rejoined"


@dataclass(slots=True, kw_only=True)
class Revoked:
    """A member's loss of resources.

    `until` is the record by which the member had certainly given up the revoked resources. It is None until there is
    one. `is_expelled` means that the member was removed before it gave them up.
    """

    record: Record
    incarnation: int
    number: int
    kind: LossKind
    member: EpochMember
    resources: frozenset[Resource]
    until: Record | None = None
    is_expelled: bool = False


@dataclass(slots=True, kw_only=True)
class Assigned:
    """An assignment of resources to a member by its current assignment."""

    record: Record
    incarnation: int
    number: int
    member_id: str
    resources: frozenset[Resource]


@dataclass(slots=True, kw_only=True)
class Emptied:
    """The departure of the last member."""

    record: Record


@dataclass(slots=True, kw_only=True)
class Begun:
    """The start of a new incarnation, in which no resource has an owner."""

    record: Record
    incarnation: int


Move = Revoked | Assigned | Emptied | Begun


@dataclass(slots=True, kw_only=True)
class EpochHistory:
    """The history of one phase from its first record to its last."""

    epochs: list[Epoch] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    incarnation: int = 0
    is_alive: bool = False
    state: GroupState = GroupState.UNKNOWN
    state_since: int | None = None
    members: dict[str, EpochMember] = field(default_factory=dict)
