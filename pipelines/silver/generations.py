"""Classic generations of one group, from its GroupMetadata records (KIP-62, KIP-345; `GroupMetadataManager`).

The four ways a record is written are told apart here: W1 a new group (generation 0, no members), W2 the leader's
SyncGroup (one generation completed), W3 a static member replaced in place (same generation, one member id changed) and
W4 a join phase that ended with nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pipelines.silver.connect import Worker, resources, worker
from pipelines.silver.history import Position, Record, Resource
from pipelines.silver.missing_partitions import MISSING
from pipelines.silver.registry import Elected, elected
from pipelines.silver.streams import Tasks, tasks
from schemas.states import NotCosted, QuarantineReason, RebalanceMode


class Member(NamedTuple):
    """One member as its generation's record states it; `previous_generation` is None where it states none.

    `worker`, `tasks` and `elected` are what only Connect workers, Streams members and registries state. `not_costed` is
    why its blobs say nothing of its resources; `entries` is how many resources an assignment that is too large lists.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    previous_generation: int | None
    topics: tuple[str, ...]
    owned: frozenset[Resource] | None
    assigned: frozenset[Resource]
    worker: Worker | None = None
    tasks: Tasks | None = None
    elected: Elected | None = None
    not_costed: NotCosted | None = None
    entries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """W3: the instance's new process took over `old` under the id `new`, without a rebalance."""

    record: Record
    old: str
    member: Member


@dataclass(slots=True, kw_only=True)
class Generation:
    """One generation that completed (W2) or ended empty (W4).

    `is_piecemeal`: members went on with what they keep while it formed. `waiting` is work of Connect workers that are
    gone, while the others wait for them to come back. Fields without an argument are computed once from the record:

    - `synced_at`: W2's record time; for a W4 the time of the transition. `completed_at`: when the group was whole again
    - `owners`: resource → the member that the leader's assignment gave it to
    - `missing`: partitions that were assigned although polls say they do not exist, by topic
    - `not_costed`: why what the members run is not known, or that some of it does not exist; `is_closed`: it is unknown
    - `workers`: what Connect's workers state; empty for other groups and if a blob could not be read
    - `delay_ms`: how long Connect's workers wait before they join again; 0 for other groups
    - `revoked`: what Connect's leader took from workers that stay
    - `config_offset`: how far Connect's configuration topic had been read
    """

    record: Record
    incarnation: int
    number: int
    protocol_type: str
    assignor: str | None
    leader: str | None
    joined_at: int
    members: dict[str, Member]
    previous: Generation | None
    created: Record | None = None
    mode: RebalanceMode = RebalanceMode.UNKNOWN
    is_piecemeal: bool = False
    waiting: frozenset[Resource] = frozenset()
    replacements: list[Replacement] = field(default_factory=list)
    position: Position = field(init=False)
    is_empty: bool = field(init=False)
    synced_at: int = field(init=False)
    completed_at: int = field(init=False)
    owners: dict[Resource, str] = field(init=False)
    missing: dict[str, list[int]] = field(init=False)
    not_costed: NotCosted | None = field(init=False)
    is_closed: bool = field(init=False)
    workers: list[Worker] = field(init=False)
    delay_ms: int = field(init=False)
    revoked: frozenset[Resource] = field(init=False)
    config_offset: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.position, self.is_empty = self.record.position, not self.members
        self.synced_at = self.joined_at if self.record.at is None else self.record.at
        self.completed_at = self.joined_at if self.is_empty else self.synced_at
        self.owners = {resource: m.member_id for m in self.members.values() for resource in m.assigned}
        self.missing = (self.record.value or {}).get(MISSING, {})
        self.workers = [m.worker for m in self.members.values() if m.worker is not None]
        self.delay_ms = max((w.delay_ms for w in self.workers), default=0)
        self.revoked = frozenset(resource for w in self.workers for resource in w.revoked)
        self.config_offset = max((w.config_offset for w in self.workers), default=None)
        self.not_costed = self._not_costed()
        self.is_closed = self.not_costed not in (None, NotCosted.NO_SUCH_PARTITION)

    @property
    def is_first(self) -> bool:
        """The group had no member before: earlier numbers, if any, are attempts that were never stored."""
        return self.previous is None and (self.number == 1 or self.created is not None)

    @property
    def final_members(self) -> dict[str, Member]:
        """Members by the id each has at the end of the generation, after static replacements."""
        members = dict(self.members)
        for change in self.replacements:
            members.pop(change.old)
            members[change.member.member_id] = change.member
        return members

    def _not_costed(self) -> NotCosted | None:
        found = {m.not_costed for m in self.members.values()}
        if NotCosted.TOO_LARGE in found:
            return NotCosted.TOO_LARGE
        if NotCosted.UNREADABLE in found or (self.protocol_type == "connect" and len(self.workers) < len(self.members)):
            return NotCosted.UNREADABLE
        return NotCosted.NO_SUCH_PARTITION if self.missing else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeState:
    """Where a history goes on: the generation at `position`, whose own rows stand, and what it alone does not tell.

    With `state` (`modern.snapshot`) it is the first record of which rows do not stand yet.
    """

    position: Position
    incarnation: int
    mode: RebalanceMode
    first_seen_at: int | None
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lives:
    """Every generation in order, and the records that are no generation: new groups (W1) and tombstones."""

    generations: list[Generation]
    created: list[tuple[int, Record]]
    tombstones: list[tuple[int, Record]]
    incarnation: int


BLOBS = ("subscription", "assignment")


def lives(records: Iterable[Record], base: ResumeState | None = None, incarnation: int = 0) -> Lives:
    """Read the GroupMetadata records of one group, in position order, from the start or from `base` on.

    The first life is `base`'s, or `incarnation`.

    A new incarnation begins after a tombstone, and where the number does not go on: a smaller or equal number that is
    neither a static replacement nor the same generation written again by another coordinator.
    """
    out = Lives(generations=[], created=[], tombstones=[], incarnation=0)
    last, created = None, None
    incarnation = base.incarnation if base else incarnation
    for record in records:
        if record.kind != "GroupMetadata":
            continue
        if record.value is None:
            out.tombstones.append((incarnation, record))
            incarnation, last, created = incarnation + (last is not None or created is not None), None, None
            continue
        number = record.value["generation"]
        if number == 0:
            if last is not None:
                incarnation, last = incarnation + 1, None
            created = record
            out.created.append((incarnation, record))
            continue
        found = _generation(record, incarnation, last, created)
        if last is not None and number == last.number:
            change = _replacement(last, found)
            if change is not None:
                last.replacements.append(change)
                continue
            if not (found.members.keys() & last.final_members.keys()) and found.members:
                incarnation, last = incarnation + 1, None
            else:
                continue
        elif last is not None and number < last.number:
            incarnation, last = incarnation + 1, None
        found.incarnation, found.previous = incarnation, last
        found.mode = base.mode if base and record.position == base.position else _mode(found)
        found.is_piecemeal = _is_piecemeal(found)
        found.waiting = _waiting(found)
        out.generations.append(found)
        last, created = found, None
    return replace(out, incarnation=incarnation)


def _generation(record: Record, incarnation: int, previous: Generation | None, created: Record | None) -> Generation:
    value = record.value
    assert value is not None
    stated = value.get("currentStateTimestamp", -1)
    return Generation(
        record=record,
        incarnation=incarnation,
        number=value["generation"],
        protocol_type=value["protocolType"],
        assignor=value["protocol"],
        leader=value["leader"],
        # Value versions 0 and 1 have no currentStateTimestamp: the record's own time is the nearest statement.
        joined_at=stated if stated > 0 else (record.at or 0),
        members={m["memberId"]: _member(m) for m in value["members"]},
        previous=previous,
        created=created if previous is None else None,
    )


def _member(stated: dict[str, Any]) -> Member:
    subscription, assignment = (part if isinstance(part, dict) else {} for part in map(stated.get, BLOBS))
    owned, part = subscription.get("ownedPartitions"), worker(subscription, assignment)
    if part is None:
        brought, running = None if owned is None else resources(owned), resources(assignment.get("partitions"))
    else:
        brought, running = part.allocation, part.running
    return Member(
        member_id=stated["memberId"],
        group_instance_id=stated.get("groupInstanceId"),
        client_id=stated["clientId"],
        client_host=stated["clientHost"],
        session_timeout_ms=stated["sessionTimeout"],
        rebalance_timeout_ms=stated.get("rebalanceTimeout") or stated["sessionTimeout"],
        previous_generation=subscription.get("generationId"),
        topics=tuple(subscription.get("topics") or ()),
        owned=brought,
        assigned=running,
        worker=part,
        tasks=tasks(assignment),
        elected=elected(assignment),
        not_costed=_not_costed(subscription, assignment),
        entries=assignment.get("entries", 0),
    )


def _not_costed(subscription: dict[str, Any], assignment: dict[str, Any]) -> NotCosted | None:
    """A blob has a reason where it should have been readable (`member_blobs.opaque`)."""
    if QuarantineReason.OVERSIZED in (subscription.get("reason"), assignment.get("reason")):
        return NotCosted.TOO_LARGE
    return NotCosted.UNREADABLE if "reason" in assignment and assignment.get("opaque") else None


def _replacement(last: Generation, found: Generation) -> Replacement | None:
    """W3: the same static instances, exactly one under a new member id."""
    before, after = last.final_members, found.members
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    if len(gone) != 1 or len(new) != 1:
        return None
    old, fresh = before[gone.pop()], after[new.pop()]
    if old.group_instance_id is None or old.group_instance_id != fresh.group_instance_id:
        return None
    return Replacement(record=found.record, old=old.member_id, member=fresh)


def _mode(found: Generation) -> RebalanceMode:
    if found.protocol_type == "sr":
        return RebalanceMode.NONE
    if found.is_empty:
        return RebalanceMode.UNKNOWN
    match found.protocol_type:
        case "connect" if len(found.workers) == len(found.members):
            return RebalanceMode.INCREMENTAL if any(w.version for w in found.workers) else RebalanceMode.EAGER
        case "consumer":
            return _consumer_mode(found)
        case _:
            return RebalanceMode.UNKNOWN


def _consumer_mode(found: Generation) -> RebalanceMode:
    """Eager members have revoked everything before they join, cooperative ones list what they still own (KIP-429)."""
    if any(m.owned for m in found.members.values()):
        return RebalanceMode.COOPERATIVE
    previous = found.previous
    if previous is None:
        return RebalanceMode.UNKNOWN
    before = previous.final_members
    # Subscription version 0 cannot list owned partitions: such a client knows the eager protocol only.
    if any(member_id in before and before[member_id].assigned for member_id in found.members):
        return RebalanceMode.EAGER
    return previous.mode if previous.assignor == found.assignor else RebalanceMode.UNKNOWN


def _is_piecemeal(found: Generation) -> bool:
    """Whether members go on with what they keep. Connect workers of an eager generation have stopped all before."""
    if found.mode == RebalanceMode.INCREMENTAL:
        return found.previous is not None and found.previous.mode != RebalanceMode.EAGER
    return found.mode == RebalanceMode.COOPERATIVE


def _waiting(found: Generation) -> frozenset[Resource]:
    """Work that was lost with its worker and is kept for it until the delay is over (KIP-415).

    A delay alone does not tell: since 3.4 it is also handed out to space out revocations, with nothing lost.
    """
    previous = found.previous
    if previous is None or found.delay_ms == 0:
        return frozenset()
    lost = {
        resource for m in previous.final_members.values() if m.member_id not in found.members for resource in m.assigned
    }
    return (previous.waiting | lost) - found.owners.keys()
