"""Readers for the group's own records: a bump of the epoch, a target assignment, the deletion of the group."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned import reading
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import FIRST_EPOCHS, ChangeKind, Emptied, Epoch, TargetAssignment
from pipelines.silver.history import Record


def group_epoch(reader: EpochReader, record: Record) -> None:
    if record.value is None:
        if not reader.is_conversion:
            _dead(reader, record)
        return
    coordinator, number = reader.coordinator, record.value["epoch"]
    coordinator.validated = record.value.get("validatedTopologyEpoch")
    metadata_hash = record.value.get("metadataHash")
    if coordinator.number is not None and number == coordinator.number:
        coordinator.metadata_hash = metadata_hash
        return
    if (
        coordinator.metadata_hash is not None
        and metadata_hash is not None
        and metadata_hash != coordinator.metadata_hash
        and coordinator.members
    ):
        reader.happen(ChangeKind.METADATA, record)
    coordinator.metadata_hash = metadata_hash
    # The members of a converted group come first, with the number of their last generation.
    is_repeated = (
        reader.inherits and bool(coordinator.members) and all(s.is_classic for s in coordinator.members.values())
    )
    reader.inherits = False
    if reader.is_alive and not is_repeated:
        last = coordinator.number if coordinator.number is not None else reader.timeline.number
        if last is not None and (number <= last or coordinator.number is None):
            reader.begin_incarnation(record)
    _bump(reader, record, number, is_repeated=is_repeated)


def _bump(reader: EpochReader, record: Record, number: int, *, is_repeated: bool) -> None:
    previous, at = reader.newest, record.at or 0
    if previous is not None and previous.completed_at is None:
        previous.overtaken_at = at
    is_taken_over = reader.coordinator.number is None and reader.phase.is_taken_over
    for happening in reader.fresh:
        happening.incarnation = reader.history.incarnation
        happening.number = number if happening.number is None else happening.number
    for revoked in reader.leaving:
        revoked.number = number
    reader.leaving = []
    if reader.coordinator.number is None:
        _begins_with(reader, number, record, is_taken_over=is_taken_over and not reader.history.epochs)
    epoch = Epoch(
        record=record,
        incarnation=reader.history.incarnation,
        number=number,
        previous=previous,
        is_repeated=is_repeated,
        members=dict(reader.coordinator.members),
        owned={m: now for m, now in reader.coordinator.currents.items() if m in reader.coordinator.members},
        why=[h for h in reader.fresh if h.number == number],
        before=previous.final if previous is not None else {},
    )
    if reader.history.epochs:
        reader.history.epochs[-1].matched = reader.matched_before
    if not reader.coordinator.members:
        epoch.completed_at = at
        reader.happen(ChangeKind.EMPTY, record, number=number)
        reader.history.moves.append(Emptied(record=record))
    for member_id in reader.coordinator.members:
        reader.coordinator.owed.setdefault(member_id, []).append(epoch)
    reader.history.epochs.append(epoch)
    reader.coordinator.number, reader.is_alive = number, True


def _begins_with(reader: EpochReader, number: int, record: Record, *, is_taken_over: bool) -> None:
    """Record the first known epoch. If the history begins late, that epoch does not show how its members joined."""
    is_whole = number in FIRST_EPOCHS or reader.history.incarnation > reader.timeline.incarnation
    for happening in reader.history.happenings:
        if happening.kind == ChangeKind.JOINED and happening.incarnation == reader.history.incarnation:
            happening.number, happening.is_by_then = number, not (is_whole or is_taken_over)
    if is_taken_over:
        reader.happen(ChangeKind.UPGRADED, record, number=number)
    elif is_whole:
        reader.happen(ChangeKind.CREATED, record, number=number)


def target_epoch(reader: EpochReader, record: Record) -> None:
    if record.value is None:
        return
    reader.coordinator.assigned_epoch = number = record.value["assignmentEpoch"]
    reader.coordinator.behind = {m for m in reader.coordinator.members if not _is_done(reader, m, number)}
    # An assignor in the background (4.3) may finish for an epoch that another epoch has followed.
    epoch = next((e for e in reversed(reader.history.epochs) if e.number <= number), None)
    if epoch is None or epoch.number != number or epoch.synced_at is not None:
        return
    epoch.synced_at = record.at or epoch.joined_at
    epoch.target = {
        m: reader.coordinator.targets.get(m, TargetAssignment())
        for m in reader.coordinator.members
        if m in epoch.members
    }
    epoch.waiting = set(reader.coordinator.behind)
    if epoch is reader.newest:
        epoch.complete(record)


def target(reader: EpochReader, record: Record) -> None:
    coordinator, member_id = reader.coordinator, record.member_id or ""
    if record.value is None:
        coordinator.targets.pop(member_id, None)
        coordinator.target_ids.pop(member_id, None)
        return
    coordinator.targets[member_id] = reading.target(record.value, reader.names.resources)
    coordinator.target_ids[member_id] = sorted({t["topicId"] for t in record.value.get("topicPartitions", ())})


def _is_done(reader: EpochReader, member_id: str, number: int) -> bool:
    now = reader.coordinator.currents.get(member_id)
    return now is not None and now.is_done and now.epoch >= number


def _dead(reader: EpochReader, record: Record) -> None:
    reader.happen(ChangeKind.DEAD, record, number=reader.coordinator.number)
    if reader.is_alive:
        reader.begin_incarnation(record)
    reader.is_alive = reader.inherits = False
    reader.coordinator = reader.coordinator.cleared()
