"""Points from which a rebuild of a group whose coordinator assigns may resume with its state (see `snapshot`).

At rest, the rows after a point depend on the coordinator's state and the owners alone. A group that never rests has a
point between two epochs whose numbers or times, divided by `EVERY` or `EVERY_MS`, have different whole parts, with what
is unfinished there (`carried_epochs`). All of it depends on the records alone, not on batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pipelines.silver.carrying.ownership import Copied, points_of
from pipelines.silver.carrying.valid_points import EVERY_MS, ResumePoint
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import Epoch
from pipelines.silver.coordinator_assigned.snapshot import Snapshot, UnsettledState, to_json
from pipelines.silver.coordinator_assigned.state import CoordinatorState
from pipelines.silver.coordinator_assigned.tasks import TaskSources
from pipelines.silver.history import CommitHistory, Position, Record, Resource
from pipelines.silver.stalls import CurrentOwner
from pipelines.silver.timeline import Timeline
from schemas.states import GroupState, RebalanceMode

EVERY = 100
"""Maximum number of epochs from one point to the next. Each epoch has a record of each member, so this is less than for
classic groups (`valid_points.EVERY`).
"""


@dataclass(slots=True, kw_only=True)
class StatePoint:
    """The state before the write that begins at `position`.

    The record at `next`, in the same write, begins epoch `number` at `next_at`. Most fields are those of
    `snapshot.Snapshot`; `state` is the group's state. `is_at_rest`: the previous epoch has been over for longer than
    `quiet_ms`. `is_border`: a point lies here even if the group is not at rest. `current` has the owners of a group at
    rest; it is None until they are known, and stays None if a stall was open. `copied` has owners and stalls at a
    border. `sources` is set later, and only for a Streams group.
    """

    position: Position
    next: Position
    number: int
    at: int
    next_at: int
    epoch: Epoch
    state: GroupState
    since: int | None
    coordinator: CoordinatorState
    names: dict[str, str]
    matched: dict[str, frozenset[str]]
    is_at_rest: bool
    is_border: bool
    current: dict[Resource, CurrentOwner] | None = None
    copied: Copied | None = None
    sources: TaskSources | None = None


def state_point(reader: EpochReader) -> StatePoint | None:
    """Return the point before a write, or None if it does not begin an epoch or if no point may lie there."""
    newest, coordinator, batch = reader.newest, reader.coordinator, reader.batch
    at = batch[0].at
    if newest is None or at is None or reader.at is None:
        return None
    kind = f"{reader.prefix}Metadata"
    begun = next((r for r in batch if r.kind == kind and r.value and r.value["epoch"] != coordinator.number), None)
    if begun is None or begun.value is None:
        return None
    number: int = begun.value["epoch"]
    is_at_rest, is_border = _is_at_rest(reader, newest, at), _is_border(newest, number, at)
    if not (is_at_rest or (is_border and coordinator.members)):
        return None
    names = reader.names.before(batch[0].position)
    if reader.names.asked - names.keys():
        return None
    return StatePoint(
        position=batch[0].position,
        next=begun.position,
        number=number,
        at=reader.at,
        next_at=at,
        epoch=newest,
        state=reader.history.state,
        since=reader.history.state_since,
        coordinator=coordinator.copy(),
        names=names,
        matched=reader.matched,
        is_at_rest=is_at_rest,
        is_border=is_border,
    )


def _is_at_rest(reader: EpochReader, newest: Epoch, at: int) -> bool:
    """Return whether all members had reached the previous epoch more than `quiet_ms` before."""
    return (
        newest.completed_at is not None
        and at - newest.completed_at > reader.timeline.quiet_ms
        and reader.history.state == GroupState.STABLE
        and reader.coordinator.assigned_epoch == reader.coordinator.number
        and not any(reader.coordinator.owed.values())
        and not reader.coordinator.revoking
        # Here the state that is carried on was stored, because the group was not at rest.
        and not (newest.is_base and reader.is_unsettled)
    )


def _is_border(newest: Epoch, number: int, at: int) -> bool:
    return number // EVERY > newest.number // EVERY or (
        number > newest.number and at // EVERY_MS != newest.joined_at // EVERY_MS
    )


def resume_point(point: StatePoint, commits: CommitHistory, last_owner: dict[Resource, str]) -> ResumePoint:
    """Return the resume point of a group at rest; `last_owner` has the last assigned owner of each resource."""
    return ResumePoint(
        position=point.position,
        at=point.at,
        mode=RebalanceMode.INCREMENTAL,
        state=partial(_state, point, commits, dict(last_owner)),
    )


def _state(point: StatePoint, commits: CommitHistory, last_owner: dict[Resource, str]) -> str:
    current = point.current or {}
    known = snapshot(point, last_owner)
    return to_json(replace(known, current=current, points=points_of(commits, current, point.position)))


def snapshot(point: StatePoint, last_owner: dict[Resource, str], unsettled: UnsettledState | None = None) -> Snapshot:
    """Return the state without owners and commits."""
    epoch = point.epoch
    return Snapshot(
        position=point.position,
        at=point.at,
        incarnation=epoch.incarnation,
        joined_at=epoch.joined_at,
        synced_at=epoch.synced_at,
        completed_at=epoch.completed_at,
        since=point.since,
        coordinator=point.coordinator,
        names=point.names,
        matched=point.matched,
        current={},
        last_owner=last_owner,
        points={},
        unsettled=unsettled,
        sources=point.sources,
    )


def before(position: Position) -> Position:
    """Return the position directly before a position."""
    return position[0], position[1] - 1


def resume(timeline: Timeline, known: Snapshot) -> None:
    """Restore the owners of the stored state of a group at rest, without their commits."""
    timeline.base_at = known.at
    timeline.last_owner.update(known.last_owner)
    timeline.ownership.begin(known.incarnation)
    timeline.ownership.current.update(known.current)


def base_epoch(known: Snapshot) -> Epoch:
    """Return the epoch of the stored state, with the fields that the next epoch needs."""
    return Epoch(
        record=Record(
            position=before(known.position), partition=0, at=known.joined_at, kind="", member_id=None, value=None
        ),
        incarnation=known.incarnation,
        number=known.coordinator.number or 0,
        previous=None,
        is_repeated=False,
        members=dict(known.coordinator.members),
        owned={},
        why=[],
        before={},
        synced_at=known.synced_at,
        completed_at=known.completed_at,
        is_base=True,
    )
