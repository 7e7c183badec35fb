"""The rows of one phase of a group whose coordinator assigns."""

from __future__ import annotations

from itertools import zip_longest

from pipelines.silver.carrying.valid_points import in_time_order
from pipelines.silver.coordinator_assigned.carried_epochs import epoch_border, resume_within
from pipelines.silver.coordinator_assigned.epoch_events import epoch_events
from pipelines.silver.coordinator_assigned.epoch_history import epoch_history
from pipelines.silver.coordinator_assigned.epoch_rows import (
    TYPES,
    EpochLines,
    assignor,
    epoch_row,
    member_rows,
    moved,
    rename,
)
from pipelines.silver.coordinator_assigned.epoch_triggers import epoch_cause
from pipelines.silver.coordinator_assigned.epochs import ChangeKind, Epoch, EpochHistory
from pipelines.silver.coordinator_assigned.exits import MemberLines
from pipelines.silver.coordinator_assigned.hand_overs import hand_overs
from pipelines.silver.coordinator_assigned.snapshot import Snapshot, from_json
from pipelines.silver.coordinator_assigned.state_points import StatePoint, before, resume, resume_point
from pipelines.silver.coordinator_assigned.tasks import TaskSources
from pipelines.silver.coordinator_assigned.topics import TopicNames
from pipelines.silver.group_events import lifecycle_lines
from pipelines.silver.groups import LastState, row_of
from pipelines.silver.history import CommitHistory, Position
from pipelines.silver.phases import Phase
from pipelines.silver.stops.member_stops import END
from pipelines.silver.timeline import Timeline
from schemas.rows import GroupOfGroup
from schemas.states import Evidence, GroupProtocol


def add_coordinator_assigned(timeline: Timeline, phase: Phase, following: Phase | None) -> None:
    """Add the phase's rows to the timeline."""
    events = phase.history.events
    end = following.records[0].position if following is not None else END
    known = _resumed(timeline)
    names = TopicNames(timeline.history, end, known)
    history, known_points = epoch_history(phase, names, timeline, _survivors(phase, following), known)
    timeline.ownership.is_streams = phase.protocol == GroupProtocol.STREAMS
    timeline.ownership.commits = _commits(timeline, phase, known, known_points)
    exits = hand_overs(history.moves, known_points, timeline.ownership, MemberLines(events), end)
    timeline.out["group_events"] += epoch_events(history, exits)
    timeline.out["group_events"] += lifecycle_lines(events, _incarnations(history))
    lines, points = EpochLines(events), {point.next: point for point in _to_go_on_from(known_points, timeline)}
    returned = [h for h in history.happenings if h.kind == ChangeKind.RETURNED]
    ends_at = phase.records[-1].at if phase.is_handed_on else None
    opened = known.unsettled.opened_at if known is not None and known.unsettled is not None else None
    for epoch, after in zip_longest(history.epochs, history.epochs[1:]):
        while returned and returned[0].record.position < epoch.position:
            rename(timeline.last_owner, returned.pop(0))
        if epoch.is_base:
            continue
        if (point := points.get(epoch.position)) is not None:
            _add_point(timeline, epoch.position, point, opened)
        opened = _opened(epoch, opened)
        if epoch.previous is None and not epoch.is_repeated:
            timeline.last_owner.clear()
        change = moved(epoch, timeline.last_owner)
        if epoch.is_repeated:
            continue
        until = after.joined_at if after is not None and after.incarnation == epoch.incarnation else ends_at
        row = epoch_row(epoch, phase.protocol, epoch_cause(epoch, exits), lines, change)
        timeline.out["generations"].append(row)
        timeline.out["generation_members"] += member_rows(epoch, phase.protocol, until)
    timeline.out["groups"] = _group(timeline, phase, history, opened)
    _hand_on(timeline, history)


def _resumed(timeline: Timeline) -> Snapshot | None:
    """Restore the state from which the history resumes, and return it."""
    if timeline.has_begun or timeline.base is None:
        return None
    if timeline.base.state is not None:
        known = from_json(timeline.base.state)
        resume(timeline, known)
        return known
    return None if timeline.carried is None else resume_within(timeline, timeline.carried.fields)


def _commits(timeline: Timeline, phase: Phase, known: Snapshot | None, points: list[StatePoint]) -> CommitHistory:
    """Return the commits by resource, and add to the points of a Streams group where those of its tasks are."""
    commits, carried = timeline.history.commits, timeline.carried
    if phase.protocol == GroupProtocol.STREAMS:
        begun = (known.sources if known is not None else None) or TaskSources()
        sources = begun.read(phase.records, commits)
        commits = sources.of_tasks(commits)
        for point in points:
            point.sources = sources.before(point.position, commits, begun)
    if known is None:
        return commits
    return commits.with_points(carried.commits if known.unsettled is not None and carried is not None else known.points)


def _add_point(timeline: Timeline, position: Position, point: StatePoint, opened: int | None) -> None:
    """Add the point before the epoch at `position`, as one at rest, as one with unfinished rows, or as both."""
    if point.current is not None:
        timeline.bases[position] = resume_point(point, timeline.ownership.commits, timeline.last_owner)
    if (border := epoch_border(point, timeline.last_owner, opened)) is not None:
        timeline.epoch_borders[position] = border


def _to_go_on_from(points: list[StatePoint], timeline: Timeline) -> list[StatePoint]:
    """Return the points at which the timestamps ascend (`carrying.valid_points`)."""
    if not points:
        return []
    is_in_time = in_time_order(timeline.history.records)
    return [point for point in points if is_in_time(before(point.position))]


def _survivors(phase: Phase, following: Phase | None) -> frozenset[str]:
    """Return the members that move to the classic protocol with the group."""
    if following is None or not phase.is_handed_on:
        return frozenset()
    first = next((r for r in following.records if r.value is not None), None)
    members = first.value.get("members", ()) if first is not None and first.value is not None else ()
    return frozenset(m["memberId"] for m in members)


def _incarnations(history: EpochHistory) -> list[tuple[int, int]]:
    return [(e.joined_at, e.incarnation) for e in history.epochs]


def _group(timeline: Timeline, phase: Phase, history: EpochHistory, opened: int | None) -> list[GroupOfGroup]:
    """Return the row of `groups`; `opened` is the time of the first epoch after the last completed one."""
    last = _living(history)
    opened = opened if last is not None else None
    return [
        row_of(
            timeline.history,
            timeline.base,
            LastState(history.state, history.state_since, Evidence.OBSERVED, opened),
            incarnation=history.incarnation,
            group_type=TYPES[phase.protocol],
            group_protocol=phase.protocol,
            assignor=assignor(last.members.values()) if last else None,
            generation_id=history.epochs[-1].number if history.epochs else None,
            member_count=len(history.members) if history.epochs else None,
        )
    ]


def _living(history: EpochHistory) -> Epoch | None:
    last = history.epochs[-1] if history.epochs else None
    return last if last is not None and last.incarnation == history.incarnation else None


def _opened(epoch: Epoch, opened: int | None) -> int | None:
    """Return when the first bump after the last completed epoch was, or None; `opened` is that time before `epoch`."""
    if epoch.completed_at is not None or epoch.is_repeated:
        return None
    return epoch.joined_at if opened is None or epoch.previous is None else opened


def _hand_on(timeline: Timeline, history: EpochHistory) -> None:
    last = _living(history)
    timeline.incarnation, timeline.has_begun = history.incarnation, True
    timeline.is_alive = history.is_alive
    if last is not None or not history.is_alive:
        timeline.number = last.number if last is not None else None
        timeline.members = frozenset(last.final) if last is not None else frozenset()
