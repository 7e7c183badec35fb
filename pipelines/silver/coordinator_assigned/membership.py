"""Readers for members: a member joins, changes its subscription, leaves, or returns with its instance id."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned import reading
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import NOTHING, ChangeKind, Emptied, EpochMember, LossKind
from pipelines.silver.history import Record


def member_metadata(reader: EpochReader, record: Record) -> None:
    member_id = record.member_id or ""
    if record.value is None:
        if not reader.is_conversion:
            _gone(reader, member_id, record)
        return
    member = reading.member(record, record.value)
    old = reader.coordinator.members.get(member_id)
    reader.coordinator.members[member_id] = member
    if old is not None:
        if (old.topics, old.regex, old.assignor) != (member.topics, member.regex, member.assignor):
            reader.happen(ChangeKind.CHANGED, record, member=member, before=old)
        return
    reader.coordinator.behind.add(member_id)
    returned = next(
        (h for h in reader.fresh if h.kind == ChangeKind.RETURNED and h.member and _same(h.member, member)), None
    )
    if returned is not None and returned.member is not None:
        _settle_return(reader, record, returned.member, member)
        returned.before, returned.member = returned.member, member
    elif not (reader.inherits and member.is_classic):
        reader.happen(ChangeKind.JOINED, record, member=member)


def without_new_epoch(reader: EpochReader, record: Record) -> None:
    """Record members that joined or left without a new epoch, such as one whose subscription matches no topic yet."""
    newest = reader.newest
    if newest is None:
        return
    at = record.at or newest.joined_at
    for member_id in reader.coordinator.members.keys() - newest.members.keys():
        newest.members[member_id], newest.began[member_id] = reader.coordinator.members[member_id], at
        reader.coordinator.owed.setdefault(member_id, []).append(newest)
    for member_id in newest.members.keys() - reader.coordinator.members.keys() - newest.ended.keys():
        newest.ended[member_id] = at
        newest.waiting.discard(member_id)


def _gone(reader: EpochReader, member_id: str, record: Record) -> None:
    coordinator = reader.coordinator
    member = coordinator.members.pop(member_id, None)
    now = coordinator.currents.pop(member_id, None)
    coordinator.targets.pop(member_id, None)
    coordinator.target_ids.pop(member_id, None)
    if member is None:
        return
    is_replaced = any(
        r.value is not None and r.kind.endswith("GroupMemberMetadata") and r.member_id != member_id
        and member.group_instance_id is not None and r.value.get("instanceId") == member.group_instance_id
        for r in reader.batch
    )  # fmt: skip
    reader.happen(ChangeKind.RETURNED if is_replaced else ChangeKind.GONE, record, member=member)
    for each in coordinator.revoking.pop(member_id, ()):
        each.until, each.is_expelled = record, not is_replaced
    kind = LossKind.REPLACED if is_replaced else LossKind.GONE
    if revoked := reader.revoke(record, kind, member, now.assigned if now else NOTHING):
        reader.leaving.append(revoked)
    coordinator.behind.discard(member_id)
    coordinator.owed.pop(member_id, None)


def _settle_return(reader: EpochReader, record: Record, old: EpochMember, new: EpochMember) -> None:
    """Record a static replacement, which does not bump the epoch (KIP-848)."""
    newest, at = reader.newest, record.at or 0
    if newest is None:
        return
    newest.ended[old.member_id], newest.began[new.member_id] = at, at
    newest.members[new.member_id] = new
    if newest.target is not None and old.member_id in newest.target:
        newest.target[new.member_id] = newest.target[old.member_id]
    if old.member_id in newest.waiting:
        newest.waiting.discard(old.member_id)
        newest.waiting.add(new.member_id)
    reader.coordinator.owed.setdefault(new.member_id, []).append(newest)


def conversion(reader: EpochReader, record: Record, survivors: frozenset[str]) -> None:
    """Record a conversion: members that do not move to the other protocol leave, and a rebalance follows."""
    for member_id in sorted(reader.coordinator.members.keys() - survivors):
        _gone(reader, member_id, record)
    for revoked in reader.leaving:
        revoked.number += 1
    if not survivors:
        reader.history.moves.append(Emptied(record=record))


def _same(old: EpochMember, new: EpochMember) -> bool:
    return old.group_instance_id is not None and old.group_instance_id == new.group_instance_id
