"""What the records of one phase of a modern group say, as dataclasses: epochs, members, and who was given what.

KIP-848 types 3 to 8 and 16, KIP-932 types 10 to 14 and KIP-1071 types 17 to 23 follow one pattern
(`GroupMetadataManager.java`): a heartbeat writes, with one timestamp, [member] → [group epoch] → [target assignment] →
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
"""The first epoch that a new group persists: 1 up to 4.2 (streams groups from 4.2: 2), 2 from 4.3."""

NOTHING: frozenset[Resource] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochMember:
    """One member as its metadata record states it; `session_timeout_ms` only where it speaks the classic protocol."""

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
    """A target assignment; standby and warm-up tasks are Streams'."""

    active: frozenset[Resource] = NOTHING
    standby: frozenset[Resource] = NOTHING
    warmup: frozenset[Resource] = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAssignment:
    """Where a member stands: its epoch, what it has, and what it was told to give up."""

    epoch: int
    is_done: bool
    assigned: frozenset[Resource]
    pending: frozenset[Resource]


class What(StrEnum):
    """What happened to a member, or to what the group consumes."""

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
    """`number` is the epoch it led to, or in which it happened; `seat` is as of then, `before` what it replaced.

    `is_by_then`: the history begins later than it happened.
    """

    what: What
    record: Record
    incarnation: int
    number: int | None = None
    seat: EpochMember | None = None
    before: EpochMember | None = None
    is_by_then: bool = False


@dataclass(slots=True, kw_only=True)
class Epoch:
    """One group epoch. `is_repeated` marks the record that repeats a converted generation's number: no row of its own.

    `seats` are the members by id while the epoch was the newest, static replacements among them; `began` and `ended`
    say when an id came or went within it, `stood` the epoch each came from. `matched` are the topics that regular
    expressions stood for at its end. `is_base`: a history goes on after it, its own rows stand.
    """

    record: Record
    incarnation: int
    number: int
    previous: Epoch | None
    is_repeated: bool
    seats: dict[str, EpochMember]
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
        return not self.seats

    @property
    def final(self) -> dict[str, EpochMember]:
        """Members at its end."""
        return {m: seat for m, seat in self.seats.items() if m not in self.ended}

    def complete(self, record: Record) -> None:
        """At this record, if all members have reached it and none had to before."""
        if self.target is not None and not self.waiting and self.completed_at is None:
            self.completed_at = record.at or self.joined_at

    @property
    def owners(self) -> dict[Resource, str]:
        """Resource → the member that the target assignment gives it to."""
        return {r: m for m, given in (self.target or {}).items() for r in given.active}


class How(StrEnum):
    """How a member came to be without a resource."""

    REVOKED = "revoked"
    GONE = "gone"
    PAUSED = "paused"
    REPLACED = "replaced"
    REJOINED = "rejoined"


@dataclass(slots=True, kw_only=True)
class Revoked:
    """`until` is the record by which the member had surely given up what it was told to revoke; None while it has not.

    `is_expelled`: it was gone before it had done so.
    """

    record: Record
    incarnation: int
    number: int
    how: How
    seat: EpochMember
    resources: frozenset[Resource]
    until: Record | None = None
    is_expelled: bool = False


@dataclass(slots=True, kw_only=True)
class Assigned:
    """A current assignment hands resources to a member."""

    record: Record
    incarnation: int
    number: int
    member_id: str
    resources: frozenset[Resource]


@dataclass(slots=True, kw_only=True)
class Emptied:
    """The last member went."""

    record: Record


@dataclass(slots=True, kw_only=True)
class Begun:
    """The id starts anew: nobody has anything."""

    record: Record
    incarnation: int


Move = Revoked | Assigned | Emptied | Begun


@dataclass(slots=True, kw_only=True)
class EpochHistory:
    """One phase from its first record to its last."""

    epochs: list[Epoch] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    incarnation: int = 0
    is_alive: bool = False
    state: GroupState = GroupState.UNKNOWN
    state_since: int | None = None
    members: dict[str, EpochMember] = field(default_factory=dict)
