"""Points from which a rebuild of a consumer group may resume, because the group was quiescent (see `snapshot`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pipelines.silver.carrying.ownership import points_of
from pipelines.silver.carrying.valid_points import ResumePoint
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.epochs import Epoch
from pipelines.silver.coordinator_assigned.snapshot import Snapshot, to_json
from pipelines.silver.coordinator_assigned.state import CoordinatorState
from pipelines.silver.history import CommitHistory, Position, Record, Resource
from pipelines.silver.stalls import CurrentOwner
from pipelines.silver.timeline import Timeline
from schemas.states import GroupProtocol, GroupState, RebalanceMode


@dataclass(slots=True, kw_only=True)
class QuiescentPoint:
    """A time at which the group was quiescent: before the write that begins at `position`.

    The record at `next`, in the same write, begins an epoch. The fields are those of `snapshot.Snapshot`. `current` has
    the owners at that time. It is None until they are known, and stays None if a stall was open.
    """

    position: Position
    next: Position
    at: int
    next_at: int
    epoch: Epoch
    since: int | None
    coordinator: CoordinatorState
    names: dict[str, str]
    matched: dict[str, frozenset[str]]
    current: dict[Resource, CurrentOwner] | None = None


def quiescent_point(reader: EpochReader) -> QuiescentPoint | None:
    """Return the quiescent point before a write, or None.

    The write must begin an epoch. All members must have reached the previous epoch more than `quiet_ms` before.
    """
    newest, coordinator, batch = reader.newest, reader.coordinator, reader.batch
    at = batch[0].at
    if (
        newest is None
        or newest.completed_at is None
        or at is None
        or reader.at is None
        or at - newest.completed_at <= reader.timeline.quiet_ms
        or reader.phase.protocol != GroupProtocol.CONSUMER
        or reader.history.state != GroupState.STABLE
        or any(coordinator.owed.values())
        or coordinator.revoking
    ):
        return None
    kind = f"{reader.prefix}Metadata"
    begun = next((r for r in batch if r.kind == kind and r.value and r.value["epoch"] != coordinator.number), None)
    if begun is None:
        return None
    names = reader.names.before(batch[0].position)
    if reader.names.asked - names.keys():
        return None
    return QuiescentPoint(
        position=batch[0].position,
        next=begun.position,
        at=reader.at,
        next_at=at,
        epoch=newest,
        since=reader.history.state_since,
        coordinator=coordinator.at_rest(),
        names=names,
        matched=reader.matched,
    )


def resume_point(point: QuiescentPoint, commits: CommitHistory, last_owner: dict[Resource, str]) -> ResumePoint:
    """Return the resume point of a quiescent point; `last_owner` has the last assigned owner of each resource."""
    return ResumePoint(
        position=point.position,
        at=point.at,
        mode=RebalanceMode.INCREMENTAL,
        state=partial(_state, point, commits, dict(last_owner)),
    )


def _state(point: QuiescentPoint, commits: CommitHistory, last_owner: dict[Resource, str]) -> str:
    epoch, current = point.epoch, point.current or {}
    assert epoch.completed_at is not None
    return to_json(
        Snapshot(
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
            current=current,
            last_owner=last_owner,
            points=points_of(commits, current, point.position),
        )
    )


def before(position: Position) -> Position:
    """Return the position directly before a position."""
    return position[0], position[1] - 1


def resume(timeline: Timeline, known: Snapshot) -> None:
    """Restore the owners of the stored state."""
    timeline.base_at = known.at
    timeline.last_owner.update(known.last_owner)
    timeline.ownership.begin(known.incarnation)
    timeline.ownership.current.update(known.current)
    timeline.ownership.commits = timeline.history.commits.with_points(known.points)


def base_epoch(known: Snapshot) -> Epoch:
    """Return the epoch of the stored state, with the fields that the next epoch needs."""
    return Epoch(
        record=Record(position=known.position, partition=0, at=known.joined_at, kind="", member_id=None, value=None),
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
