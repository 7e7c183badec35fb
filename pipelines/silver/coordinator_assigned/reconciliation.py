"""Reader for current assignments: the resources that each member has, gives up and gets on its way to the epoch.

As in `CurrentAssignmentBuilder.java`, a member with too many resources first gives them up and then advances.
"""

from __future__ import annotations

from pipelines.silver.coordinator_assigned import reading
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import (
    NOTHING,
    PAUSED_EPOCH,
    Assigned,
    ChangeKind,
    CurrentAssignment,
    EpochMember,
    LossKind,
)
from pipelines.silver.history import Record
from schemas.states import GroupProtocol


def current(reader: EpochReader, record: Record) -> None:
    coordinator, member_id = reader.coordinator, record.member_id or ""
    member = coordinator.members.get(member_id)
    if record.value is None or member is None:
        return  # the member's own tombstone follows
    now = reading.current(reader.prefix, record.value, reader.names.resources)
    was = coordinator.currents.get(member_id)
    coordinator.currents[member_id] = now
    had = was.assigned if was else NOTHING
    for revoked in coordinator.revoking.pop(member_id, ()):
        if revoked.resources & now.pending:
            coordinator.revoking.setdefault(member_id, []).append(revoked)
        else:
            revoked.until = record
    if now.epoch == PAUSED_EPOCH:
        reader.happen(ChangeKind.PAUSED, record, member=member)
        reader.revoke(record, LossKind.PAUSED, member, had | now.assigned)
    else:
        _hand_over(reader, record, member, was, now)
    _reach(reader, member_id, now, record)


def _hand_over(
    reader: EpochReader, record: Record, member: EpochMember, was: CurrentAssignment | None, now: CurrentAssignment
) -> None:
    had = was.assigned if was else NOTHING
    pending = now.pending - (was.pending if was else NOTHING)
    revoked_for = reader.coordinator.assigned_epoch or now.epoch
    if pending and (revoked := reader.revoke(record, LossKind.REVOKED, member, pending, revoked_for)):
        reader.coordinator.revoking.setdefault(member.member_id, []).append(revoked)
    lost = had - now.assigned - now.pending
    is_eager = member.is_classic and not member.owns_on_rejoin
    rejoined = is_eager and was is not None and now.epoch > was.epoch
    # An eager classic client gives up all its resources before it rejoins, and then gets them again.
    if revoked := reader.revoke(record, LossKind.REJOINED, member, had if rejoined else lost, now.epoch):
        revoked.until = record
    gained = now.assigned if rejoined or (was and was.epoch == PAUSED_EPOCH) else now.assigned - had
    if gained and reader.phase.protocol != GroupProtocol.SHARE:
        reader.history.moves.append(
            Assigned(
                record=record,
                incarnation=reader.history.incarnation,
                # The new process of a static member first has epoch 0.
                number=now.epoch or reader.coordinator.number or 0,
                member_id=member.member_id,
                resources=gained,
            )
        )


def _reach(reader: EpochReader, member_id: str, now: CurrentAssignment, record: Record) -> None:
    """Record that the member has reached its epoch, and thereby every earlier one."""
    coordinator, number = reader.coordinator, reader.coordinator.assigned_epoch
    if number is not None and now.is_done and now.epoch >= number:
        coordinator.behind.discard(member_id)
    else:
        coordinator.behind.add(member_id)
    if not now.is_done or now.epoch < 0:
        return
    owed = coordinator.owed.get(member_id, [])
    coordinator.owed[member_id] = [e for e in owed if e.number > now.epoch]
    for epoch in owed:
        if epoch.number <= now.epoch and record.at is not None:
            epoch.reconciled[member_id] = record.at
    newest = reader.newest
    if newest is not None and now.epoch >= newest.number:
        newest.waiting.discard(member_id)
        newest.complete(record)
