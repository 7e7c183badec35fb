"""Classic generations of one group, from its GroupMetadata records (KIP-62, KIP-345; `GroupMetadataManager`).

A record has one of four origins. W1: a new group (generation 0, no members). W2: the leader's SyncGroup, which
completes a generation. W3: the replacement of a static member (same generation, one member id changed). W4: a join
phase that ended without members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pipelines.decoding.member_shape import MemberShape, member_shape
from pipelines.decoding.record_times import LAST_MS
from pipelines.silver.client_library import UNKNOWN, ClassicMember, Recognized, of_record, with_group
from pipelines.silver.connect import Worker, resources, worker
from pipelines.silver.history import Position, Record, Resource
from pipelines.silver.missing_partitions import MISSING
from pipelines.silver.registry import Elected, elected
from pipelines.silver.streams import Tasks, tasks
from schemas.states import NotCosted, QuarantineReason, RebalanceMode


class Member(NamedTuple):
    """One member in its generation's record; `previous_generation` is None if the record has none.

    `worker`, `tasks` and `elected` are set only for Connect workers, Streams members and schema registries.
    `not_costed` is the reason why the member's resources are not known; `entries` is the count of resources in a too
    large assignment. `shape` is set only for consumers. `library` is the client library as far as the record shows it.
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
    shape: MemberShape | None = None
    library: Recognized = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """W3: a new process of a static instance joined without a rebalance, and its new member id replaced `old`."""

    record: Record
    old: str
    member: Member


@dataclass(slots=True, kw_only=True)
class Generation:
    """One generation that completed (W2) or ended empty (W4).

    `is_piecemeal`: members continued with the resources that they kept while the generation formed. `waiting`:
    resources of Connect workers that are gone, for which the group waits until the workers return.
    `is_join_recorded`: the record says when the join phase ended; otherwise `joined_at` is the latest possible time.
    Fields without an argument are computed once:

    - `final_members`: the members by their ids at the end of the generation, after static replacements
      (`replace_member`)
    - `is_first`: the group had no member before; earlier numbers, if any, are attempts that were never stored
    - `synced_at`: record time of W2; for W4 the time of the transition
    - `completed_at`: when the generation was complete
    - `owners`: resource → the member that the leader assigned it to
    - `missing`: by topic, assigned partitions that do not exist according to polls
    - `not_costed`: why the resources of members are not known, or that some do not exist
    - `is_closed`: the resources of members are not known
    - `workers`: data of Connect workers; empty for other groups and if a blob could not be read
    - `delay_ms`: how long Connect workers wait before they rejoin; 0 for other groups
    - `revoked`: resources that Connect's leader revoked from workers that stay
    - `config_offset`: offset up to which Connect's configuration topic was read
    """

    record: Record
    incarnation: int
    number: int
    protocol_type: str
    assignor: str | None
    leader: str | None
    joined_at: int
    is_join_recorded: bool
    members: dict[str, Member]
    previous: Generation | None
    created: Record | None = None
    mode: RebalanceMode = RebalanceMode.UNKNOWN
    is_piecemeal: bool = False
    waiting: frozenset[Resource] = frozenset()
    replacements: list[Replacement] = field(default_factory=list)
    final_members: dict[str, Member] = field(init=False)
    position: Position = field(init=False)
    is_first: bool = field(init=False)
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
        self.final_members = self.members
        self.is_first = self.previous is None and (self.number == 1 or self.created is not None)
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

    def replace_member(self, change: Replacement) -> None:
        """Add a static replacement."""
        if not self.replacements:
            self.final_members = dict(self.members)
        self.replacements.append(change)
        del self.final_members[change.old]
        self.final_members[change.member.member_id] = change.member

    def _not_costed(self) -> NotCosted | None:
        found = {m.not_costed for m in self.members.values()}
        if NotCosted.TOO_LARGE in found:
            return NotCosted.TOO_LARGE
        if NotCosted.UNREADABLE in found or (self.protocol_type == "connect" and len(self.workers) < len(self.members)):
            return NotCosted.UNREADABLE
        return NotCosted.NO_SUCH_PARTITION if self.missing else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeState:
    """The state from which a history resumes: the generation at `position`, whose rows stay unchanged.

    The other fields are facts that its record does not contain. With `state` (`coordinator_assigned.snapshot`),
    `position` is the first record whose rows are rebuilt. `carried` is the state of a group that was not at rest
    (`carrying.points`).
    """

    position: Position
    incarnation: int
    mode: RebalanceMode
    first_seen_at: int | None
    state: str | None = None
    carried: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupIncarnations:
    """All generations in order, the records of new groups (W1), and the tombstones."""

    generations: list[Generation]
    created: list[tuple[int, Record]]
    tombstones: list[tuple[int, Record]]
    incarnation: int


OF_MEMBERS = ("protocolType", "protocol", "members")
"""Fields of a record that `_members` reads."""


def read_incarnations(
    records: Iterable[Record],
    base: ResumeState | None = None,
    incarnation: int = 0,
    waiting: frozenset[Resource] = frozenset(),
) -> GroupIncarnations:
    """Read the GroupMetadata records of one group in position order, from the start or from `base` on.

    The first incarnation is that of `base`, or `incarnation` without a base. `waiting` are the resources for which the
    group waits at the base (`Generation.waiting`). A new incarnation begins after a
    tombstone. It also begins if the number does not increase, unless the record is a static replacement or another
    coordinator wrote the same generation again.
    """
    out = GroupIncarnations(generations=[], created=[], tombstones=[], incarnation=0)
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
                last.replace_member(change)
                continue
            if not found.members or found.members.keys() & last.final_members.keys():
                continue
        if last is not None and number <= last.number:
            incarnation += 1
            found = _generation(record, incarnation, None, created)
        is_base = base is not None and record.position == base.position
        found.mode = base.mode if base is not None and is_base else _mode(found)
        found.is_piecemeal = _is_piecemeal(found)
        found.waiting = waiting if is_base else _waiting(found)
        out.generations.append(found)
        last, created = found, None
    return replace(out, incarnation=incarnation)


def _generation(record: Record, incarnation: int, previous: Generation | None, created: Record | None) -> Generation:
    value = record.value
    assert value is not None
    # Value versions 0 and 1 have no currentStateTimestamp, and it may be no time that a table can store.
    since = value.get("currentStateTimestamp", -1)
    is_recorded = 0 < since <= LAST_MS
    return Generation(
        record=record,
        incarnation=incarnation,
        number=value["generation"],
        protocol_type=value["protocolType"],
        assignor=value["protocol"],
        leader=value["leader"],
        joined_at=since if is_recorded else (record.at or 0),
        # The record of an empty group is written when the join phase ends.
        is_join_recorded=is_recorded or not value["members"],
        members=_members(value, previous),
        previous=previous,
        created=created if previous is None else None,
    )


def _members(value: dict[str, Any], previous: Generation | None) -> dict[str, Member]:
    """Return the members by id. In a loop they are equal in each generation, and are read once."""
    before = previous.record.value if previous is not None else None
    if previous is not None and before is not None and all(value[name] == before[name] for name in OF_MEMBERS):
        return previous.members
    by_id = {fields["memberId"]: fields for fields in value["members"]}
    shapes = {m: member_shape(*_blobs(fields)) for m, fields in by_id.items()}
    libraries = _libraries(value, by_id, shapes)
    return {m: _member(fields, shapes[m], libraries[m]) for m, fields in by_id.items()}


def _member(fields: dict[str, Any], shape: MemberShape | None, library: Recognized) -> Member:
    subscription, assignment = _blobs(fields)
    owned, part = subscription.get("ownedPartitions"), worker(subscription, assignment)
    if part is None:
        brought, running = None if owned is None else resources(owned), resources(assignment.get("partitions"))
    else:
        brought, running = part.allocation, part.running
    return Member(
        member_id=fields["memberId"],
        group_instance_id=fields.get("groupInstanceId"),
        client_id=fields["clientId"],
        client_host=fields["clientHost"],
        session_timeout_ms=fields["sessionTimeout"],
        rebalance_timeout_ms=_rebalance_timeout_ms(fields),
        previous_generation=subscription.get("generationId"),
        topics=tuple(subscription.get("topics") or ()),
        owned=brought,
        assigned=running,
        worker=part,
        tasks=tasks(assignment),
        elected=elected(assignment),
        not_costed=_not_costed(subscription, assignment),
        entries=assignment.get("entries", 0),
        shape=shape,
        library=library,
    )


def _libraries(
    value: dict[str, Any], by_id: Mapping[str, dict[str, Any]], shapes: Mapping[str, MemberShape | None]
) -> dict[str, Recognized]:
    """Return the libraries of the members in a record, as far as the record shows them."""
    kind, assignor = value["protocolType"], value["protocol"]
    return with_group(
        {
            m: of_record(
                ClassicMember(
                    kind,
                    assignor,
                    fields["clientId"],
                    fields["sessionTimeout"],
                    _rebalance_timeout_ms(fields),
                    shapes[m],
                )
            )
            for m, fields in by_id.items()
        }
    )


def _blobs(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the decoded subscription and assignment of a member; empty if they could not be decoded."""
    subscription, assignment = fields.get("subscription"), fields.get("assignment")
    return (
        subscription if isinstance(subscription, dict) else {},
        assignment if isinstance(assignment, dict) else {},
    )


def _rebalance_timeout_ms(fields: dict[str, Any]) -> int:
    timeout_ms: int = fields.get("rebalanceTimeout") or fields["sessionTimeout"]
    return timeout_ms


def _not_costed(subscription: dict[str, Any], assignment: dict[str, Any]) -> NotCosted | None:
    """Return why the member's resources are not known. A blob that should be readable has a reason (`member_blobs`)."""
    if QuarantineReason.OVERSIZED in (subscription.get("reason"), assignment.get("reason")):
        return NotCosted.TOO_LARGE
    return NotCosted.UNREADABLE if "reason" in assignment and assignment.get("opaque") else None


def _replacement(last: Generation, found: Generation) -> Replacement | None:
    """Return the replacement (W3): the same static instances, exactly one of them with a new member id."""
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
    """Return the mode of consumers (KIP-429).

    Eager members revoke everything before they join. Cooperative members list the partitions that they own.
    """
    if any(m.owned for m in found.members.values()):
        return RebalanceMode.COOPERATIVE
    previous = found.previous
    if previous is None:
        return RebalanceMode.UNKNOWN
    before = previous.final_members
    # Subscription version 0 cannot list owned partitions, so such a client supports only the eager protocol.
    if any(member_id in before and before[member_id].assigned for member_id in found.members):
        return RebalanceMode.EAGER
    return previous.mode if previous.assignor == found.assignor else RebalanceMode.UNKNOWN


def _is_piecemeal(found: Generation) -> bool:
    """Return whether members continue with the resources they keep.

    Connect workers of an eager generation stopped everything first.
    """
    if found.mode == RebalanceMode.INCREMENTAL:
        return found.previous is not None and found.previous.mode != RebalanceMode.EAGER
    return found.mode == RebalanceMode.COOPERATIVE


def _waiting(found: Generation) -> frozenset[Resource]:
    """Return resources that were lost with their worker and are kept for it until the delay is over (KIP-415).

    A delay does not prove a loss: since 3.4, the leader also sets one to space out revocations.
    """
    previous = found.previous
    if previous is None or found.delay_ms == 0:
        return frozenset()
    lost = {
        resource for m in previous.final_members.values() if m.member_id not in found.members for resource in m.assigned
    }
    return (previous.waiting | lost) - found.owners.keys()
