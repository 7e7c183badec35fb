"""Readers for the group's own records: a bump of the epoch, a target assignment, the deletion of the group."""

from __future__ import annotations

from pipelines.silver.coordinator_assigned import reading
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import FIRST_EPOCHS, Emptied, Epoch, TargetAssignment, What
from pipelines.silver.history import Record


def group_epoch(walk: EpochReader, record: Record) -> None:
    if record.value is None:
        if not walk.is_conversion:
            _dead(walk, record)
        return
    stand, number = walk.stand, record.value["epoch"]
    stand.validated = record.value.get("validatedTopologyEpoch")
    stated = record.value.get("metadataHash")
    if stand.number is not None and number == stand.number:
        stand.metadata_hash = stated
        return
    if stand.metadata_hash is not None and stated is not None and stated != stand.metadata_hash and stand.seats:
        walk.happen(What.METADATA, record)
    stand.metadata_hash = stated
    # The members of a converted group come first, with the number of their last generation.
    is_repeated = walk.inherits and bool(stand.seats) and all(s.is_classic for s in stand.seats.values())
    walk.inherits = False
    if walk.is_alive and not is_repeated:
        last = stand.number if stand.number is not None else walk.timeline.number
        if last is not None and (number <= last or stand.number is None):
            walk.begin_incarnation(record)
    _bump(walk, record, number, is_repeated=is_repeated)


def _bump(walk: EpochReader, record: Record, number: int, *, is_repeated: bool) -> None:
    previous, at = walk.newest, record.at or 0
    if previous is not None and previous.completed_at is None:
        previous.overtaken_at = at
    is_taken_over = walk.stand.number is None and walk.phase.is_taken_over
    for happening in walk.fresh:
        happening.incarnation = walk.course.incarnation
        happening.number = number if happening.number is None else happening.number
    for taken in walk.leaving:
        taken.number = number
    walk.leaving = []
    if walk.stand.number is None:
        _begins_with(walk, number, record, is_taken_over=is_taken_over and not walk.course.epochs)
    epoch = Epoch(
        record=record,
        incarnation=walk.course.incarnation,
        number=number,
        previous=previous,
        is_repeated=is_repeated,
        seats=dict(walk.stand.seats),
        owned={m: now for m, now in walk.stand.currents.items() if m in walk.stand.seats},
        why=[h for h in walk.fresh if h.number == number],
        before=previous.final if previous is not None else {},
    )
    if walk.course.epochs:
        walk.course.epochs[-1].matched = walk.matched_before
    if not walk.stand.seats:
        epoch.completed_at = at
        walk.happen(What.EMPTY, record, number=number)
        walk.course.moves.append(Emptied(record=record))
    for member_id in walk.stand.seats:
        walk.stand.owed.setdefault(member_id, []).append(epoch)
    walk.course.epochs.append(epoch)
    walk.stand.number, walk.is_alive = number, True


def _begins_with(walk: EpochReader, number: int, record: Record, *, is_taken_over: bool) -> None:
    """Record the first known epoch. If the history begins late, that epoch does not show how its members joined."""
    is_whole = number in FIRST_EPOCHS or walk.course.incarnation > walk.timeline.incarnation
    for happening in walk.course.happenings:
        if happening.what == What.JOINED and happening.incarnation == walk.course.incarnation:
            happening.number, happening.is_by_then = number, not (is_whole or is_taken_over)
    if is_taken_over:
        walk.happen(What.UPGRADED, record, number=number)
    elif is_whole:
        walk.happen(What.CREATED, record, number=number)


def target_epoch(walk: EpochReader, record: Record) -> None:
    if record.value is None:
        return
    walk.stand.assigned_epoch = number = record.value["assignmentEpoch"]
    walk.stand.behind = {m for m in walk.stand.seats if not _is_done(walk, m, number)}
    # An assignor in the background (4.3) may finish for an epoch that another epoch has followed.
    epoch = next((e for e in reversed(walk.course.epochs) if e.number <= number), None)
    if epoch is None or epoch.number != number or epoch.synced_at is not None:
        return
    epoch.synced_at = record.at or epoch.joined_at
    epoch.target = {m: walk.stand.targets.get(m, TargetAssignment()) for m in walk.stand.seats if m in epoch.seats}
    epoch.waiting = set(walk.stand.behind)
    if epoch is walk.newest:
        epoch.complete(record)


def target(walk: EpochReader, record: Record) -> None:
    stand, member_id = walk.stand, record.member_id or ""
    if record.value is None:
        stand.targets.pop(member_id, None)
        stand.target_ids.pop(member_id, None)
        return
    stand.targets[member_id] = reading.given(record.value, walk.names.resources)
    stand.target_ids[member_id] = sorted({t["topicId"] for t in record.value.get("topicPartitions", ())})


def _is_done(walk: EpochReader, member_id: str, number: int) -> bool:
    now = walk.stand.currents.get(member_id)
    return now is not None and now.is_done and now.epoch >= number


def _dead(walk: EpochReader, record: Record) -> None:
    walk.happen(What.DEAD, record, number=walk.stand.number)
    if walk.is_alive:
        walk.begin_incarnation(record)
    walk.is_alive = walk.inherits = False
    walk.stand = walk.stand.cleared()
