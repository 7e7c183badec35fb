"""Readers for the group's own records: a bump of the epoch, a target assignment, the deletion of the group."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned import reading
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import FIRST_EPOCHS, Emptied, Epoch, TargetAssignment, What
from pipelines.silver.history import Record


def group_epoch(reader: EpochReader, record: Record) -> None:
    if record.value is None:
        if not reader.is_conversion:
            _dead(reader, record)
        return
    stand, number = reader.stand, record.value["epoch"]
    stand.validated = record.value.get("validatedTopologyEpoch")
    metadata_hash = record.value.get("metadataHash")
    if stand.number is not None and number == stand.number:
        stand.metadata_hash = metadata_hash
        return
    if (
        stand.metadata_hash is not None
        and metadata_hash is not None
        and metadata_hash != stand.metadata_hash
        and stand.seats
    ):
        reader.happen(What.METADATA, record)
    stand.metadata_hash = metadata_hash
    # The members of a converted group come first, with the number of their last generation.
    is_repeated = reader.inherits and bool(stand.seats) and all(s.is_classic for s in stand.seats.values())
    reader.inherits = False
    if reader.is_alive and not is_repeated:
        last = stand.number if stand.number is not None else reader.timeline.number
        if last is not None and (number <= last or stand.number is None):
            reader.begin_incarnation(record)
    _bump(reader, record, number, is_repeated=is_repeated)


def _bump(reader: EpochReader, record: Record, number: int, *, is_repeated: bool) -> None:
    previous, at = reader.newest, record.at or 0
    if previous is not None and previous.completed_at is None:
        previous.overtaken_at = at
    is_taken_over = reader.stand.number is None and reader.phase.is_taken_over
    for happening in reader.fresh:
        happening.incarnation = reader.course.incarnation
        happening.number = number if happening.number is None else happening.number
    for taken in reader.leaving:
        taken.number = number
    reader.leaving = []
    if reader.stand.number is None:
        _begins_with(reader, number, record, is_taken_over=is_taken_over and not reader.course.epochs)
    epoch = Epoch(
        record=record,
        incarnation=reader.course.incarnation,
        number=number,
        previous=previous,
        is_repeated=is_repeated,
        seats=dict(reader.stand.seats),
        owned={m: now for m, now in reader.stand.currents.items() if m in reader.stand.seats},
        why=[h for h in reader.fresh if h.number == number],
        before=previous.final if previous is not None else {},
    )
    if reader.course.epochs:
        reader.course.epochs[-1].matched = reader.matched_before
    if not reader.stand.seats:
        epoch.completed_at = at
        reader.happen(What.EMPTY, record, number=number)
        reader.course.moves.append(Emptied(record=record))
    for member_id in reader.stand.seats:
        reader.stand.owed.setdefault(member_id, []).append(epoch)
    reader.course.epochs.append(epoch)
    reader.stand.number, reader.is_alive = number, True


def _begins_with(reader: EpochReader, number: int, record: Record, *, is_taken_over: bool) -> None:
    """Record the first known epoch. If the history begins late, that epoch does not show how its members joined."""
    is_whole = number in FIRST_EPOCHS or reader.course.incarnation > reader.timeline.incarnation
    for happening in reader.course.happenings:
        if happening.what == What.JOINED and happening.incarnation == reader.course.incarnation:
            happening.number, happening.is_by_then = number, not (is_whole or is_taken_over)
    if is_taken_over:
        reader.happen(What.UPGRADED, record, number=number)
    elif is_whole:
        reader.happen(What.CREATED, record, number=number)


def target_epoch(reader: EpochReader, record: Record) -> None:
    if record.value is None:
        return
    reader.stand.assigned_epoch = number = record.value["assignmentEpoch"]
    reader.stand.behind = {m for m in reader.stand.seats if not _is_done(reader, m, number)}
    # An assignor in the background (4.3) may finish for an epoch that another epoch has followed.
    epoch = next((e for e in reversed(reader.course.epochs) if e.number <= number), None)
    if epoch is None or epoch.number != number or epoch.synced_at is not None:
        return
    epoch.synced_at = record.at or epoch.joined_at
    epoch.target = {m: reader.stand.targets.get(m, TargetAssignment()) for m in reader.stand.seats if m in epoch.seats}
    epoch.waiting = set(reader.stand.behind)
    if epoch is reader.newest:
        epoch.complete(record)


def target(reader: EpochReader, record: Record) -> None:
    stand, member_id = reader.stand, record.member_id or ""
    if record.value is None:
        stand.targets.pop(member_id, None)
        stand.target_ids.pop(member_id, None)
        return
    stand.targets[member_id] = reading.given(record.value, reader.names.resources)
    stand.target_ids[member_id] = sorted({t["topicId"] for t in record.value.get("topicPartitions", ())})


def _is_done(reader: EpochReader, member_id: str, number: int) -> bool:
    now = reader.stand.currents.get(member_id)
    return now is not None and now.is_done and now.epoch >= number


def _dead(reader: EpochReader, record: Record) -> None:
    reader.happen(What.DEAD, record, number=reader.stand.number)
    if reader.is_alive:
        reader.begin_incarnation(record)
    reader.is_alive = reader.inherits = False
    reader.stand = reader.stand.cleared()
