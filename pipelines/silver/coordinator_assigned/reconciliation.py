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
    CurrentAssignment,
    EpochMember,
    How,
    What,
)
from pipelines.silver.history import Record
from schemas.states import GroupProtocol


def current(reader: EpochReader, record: Record) -> None:
    stand, member_id = reader.stand, record.member_id or ""
    seat = stand.seats.get(member_id)
    if record.value is None or seat is None:
        return  # the member's own tombstone follows
    now = reading.current(reader.prefix, record.value, reader.names.resources)
    was = stand.currents.get(member_id)
    stand.currents[member_id] = now
    had = was.assigned if was else NOTHING
    for taken in stand.revoking.pop(member_id, ()):
        if taken.resources & now.pending:
            stand.revoking.setdefault(member_id, []).append(taken)
        else:
            taken.until = record
    if now.epoch == PAUSED_EPOCH:
        reader.happen(What.PAUSED, record, seat=seat)
        reader.take(record, How.PAUSED, seat, had | now.assigned)
    else:
        _hand_over(reader, record, seat, was, now)
    _reach(reader, member_id, now, record)


def _hand_over(
    reader: EpochReader, record: Record, seat: EpochMember, was: CurrentAssignment | None, now: CurrentAssignment
) -> None:
    had = was.assigned if was else NOTHING
    pending = now.pending - (was.pending if was else NOTHING)
    revoked_for = reader.stand.assigned_epoch or now.epoch
    if pending and (taken := reader.take(record, How.REVOKED, seat, pending, revoked_for)):
        reader.stand.revoking.setdefault(seat.member_id, []).append(taken)
    lost = had - now.assigned - now.pending
    is_eager = seat.is_classic and not seat.owns_on_rejoin
    rejoined = is_eager and was is not None and now.epoch > was.epoch
    # An eager classic client gives up all its resources before it rejoins, and then gets them again.
    if taken := reader.take(record, How.REJOINED, seat, had if rejoined else lost, now.epoch):
        taken.until = record
    got = now.assigned if rejoined or (was and was.epoch == PAUSED_EPOCH) else now.assigned - had
    if got and reader.phase.protocol != GroupProtocol.SHARE:
        reader.course.moves.append(
            Assigned(
                record=record,
                incarnation=reader.course.incarnation,
                # The new process of a static member first has epoch 0.
                number=now.epoch or reader.stand.number or 0,
                member_id=seat.member_id,
                resources=got,
            )
        )


def _reach(reader: EpochReader, member_id: str, now: CurrentAssignment, record: Record) -> None:
    """Record that the member has reached its epoch, and thereby every earlier one."""
    stand, number = reader.stand, reader.stand.assigned_epoch
    if number is not None and now.is_done and now.epoch >= number:
        stand.behind.discard(member_id)
    else:
        stand.behind.add(member_id)
    if not now.is_done or now.epoch < 0:
        return
    owed = stand.owed.get(member_id, [])
    stand.owed[member_id] = [e for e in owed if e.number > now.epoch]
    for epoch in owed:
        if epoch.number <= now.epoch and record.at is not None:
            epoch.reconciled[member_id] = record.at
    newest = reader.newest
    if newest is not None and now.epoch >= newest.number:
        newest.waiting.discard(member_id)
        newest.complete(record)
