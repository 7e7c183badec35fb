"""Readers for members: a member joins, changes its subscription, leaves, or returns with its instance id."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned import reading
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import NOTHING, Emptied, EpochMember, How, What
from pipelines.silver.history import Record


def member(reader: EpochReader, record: Record) -> None:
    member_id = record.member_id or ""
    if record.value is None:
        if not reader.is_conversion:
            _gone(reader, member_id, record)
        return
    seat = reading.seat(record, record.value)
    old = reader.stand.seats.get(member_id)
    reader.stand.seats[member_id] = seat
    if old is not None:
        if (old.topics, old.regex, old.assignor) != (seat.topics, seat.regex, seat.assignor):
            reader.happen(What.CHANGED, record, seat=seat, before=old)
        return
    reader.stand.behind.add(member_id)
    returned = next((h for h in reader.fresh if h.what == What.RETURNED and h.seat and _same(h.seat, seat)), None)
    if returned is not None and returned.seat is not None:
        _settle_return(reader, record, returned.seat, seat)
        returned.before, returned.seat = returned.seat, seat
    elif not (reader.inherits and seat.is_classic):
        reader.happen(What.JOINED, record, seat=seat)


def without_new_epoch(reader: EpochReader, record: Record) -> None:
    """Record members that joined or left without a new epoch, such as one whose subscription matches no topic yet."""
    newest = reader.newest
    if newest is None:
        return
    at = record.at or newest.joined_at
    for member_id in reader.stand.seats.keys() - newest.seats.keys():
        newest.seats[member_id], newest.began[member_id] = reader.stand.seats[member_id], at
        reader.stand.owed.setdefault(member_id, []).append(newest)
    for member_id in newest.seats.keys() - reader.stand.seats.keys() - newest.ended.keys():
        newest.ended[member_id] = at
        newest.waiting.discard(member_id)


def _gone(reader: EpochReader, member_id: str, record: Record) -> None:
    stand = reader.stand
    seat = stand.seats.pop(member_id, None)
    now = stand.currents.pop(member_id, None)
    stand.targets.pop(member_id, None)
    stand.target_ids.pop(member_id, None)
    if seat is None:
        return
    is_replaced = any(
        r.value is not None and r.kind.endswith("GroupMemberMetadata") and r.member_id != member_id
        and seat.group_instance_id is not None and r.value.get("instanceId") == seat.group_instance_id
        for r in reader.batch
    )  # fmt: skip
    reader.happen(What.RETURNED if is_replaced else What.GONE, record, seat=seat)
    for revoked in stand.revoking.pop(member_id, ()):
        revoked.until, revoked.is_expelled = record, not is_replaced
    how = How.REPLACED if is_replaced else How.GONE
    if taken := reader.take(record, how, seat, now.assigned if now else NOTHING):
        reader.leaving.append(taken)
    stand.behind.discard(member_id)
    stand.owed.pop(member_id, None)


def _settle_return(reader: EpochReader, record: Record, old: EpochMember, new: EpochMember) -> None:
    """Record a static replacement, which does not bump the epoch (KIP-848)."""
    newest, at = reader.newest, record.at or 0
    if newest is None:
        return
    newest.ended[old.member_id], newest.began[new.member_id] = at, at
    newest.seats[new.member_id] = new
    if newest.target is not None and old.member_id in newest.target:
        newest.target[new.member_id] = newest.target[old.member_id]
    if old.member_id in newest.waiting:
        newest.waiting.discard(old.member_id)
        newest.waiting.add(new.member_id)
    reader.stand.owed.setdefault(new.member_id, []).append(newest)


def conversion(reader: EpochReader, record: Record, survivors: frozenset[str]) -> None:
    """Record a conversion: members that do not move to the other protocol leave, and a rebalance follows."""
    for member_id in sorted(reader.stand.seats.keys() - survivors):
        _gone(reader, member_id, record)
    for taken in reader.leaving:
        taken.number += 1
    if not survivors:
        reader.course.moves.append(Emptied(record=record))


def _same(old: EpochMember, new: EpochMember) -> bool:
    return old.group_instance_id is not None and old.group_instance_id == new.group_instance_id
