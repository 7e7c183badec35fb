"""The state of a group whose coordinator assigns, at a point where it is not at rest, with which a rebuild resumes.

No point lies where later records still decide an earlier epoch or revocation: where a member has yet to reach the
epoch, or to confirm the revocation (`settle`). Open stalls, stalls that wait for a first commit, and episodes are
carried on, as in `carrying.points`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.silver.carrying.episode import Fields
from pipelines.silver.carrying.ownership import Copied, restore, stalls_of
from pipelines.silver.carrying.points import unfinished
from pipelines.silver.coordinator_assigned.epoch_reader import EpochReader
from pipelines.silver.coordinator_assigned.snapshot import Snapshot, UnsettledState, from_fields, to_fields
from pipelines.silver.coordinator_assigned.state_points import StatePoint, snapshot
from pipelines.silver.history import CommitHistory, Position, Resource
from pipelines.silver.stops.member_stops import APPEND_MS, END
from pipelines.silver.stops.stall import Stall
from pipelines.silver.timeline import Timeline
from schemas.rows import ResumePointOfGroup
from schemas.states import RebalanceMode


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochBorder:
    """What was known right before the epoch of a point."""

    point: StatePoint
    copied: Copied
    snapshot: Snapshot

    @property
    def live(self) -> Sequence[Stall]:
        """The stalls that later records may still change."""
        return self.copied.live

    def row(self, known: Sequence[Fields], commits: CommitHistory) -> ResumePointOfGroup:
        """Return the row of `resume_points`; `known` are the sums of the episodes that may still change."""
        point = self.point
        fields = self.copied.fields | {"snapshot": to_fields(self.snapshot), "waiting": [], "owners": []}
        found = unfinished(fields, known, commits, point.position, point.at)
        return {
            "incarnation": point.epoch.incarnation,
            "first_generation_id": point.number,
            # Until then, the first commit of a member may show when it had resumed.
            "settled_at": point.next_at + APPEND_MS,
            "log_epoch": point.position[0],
            "source_offset": point.position[1],
            "base_log_epoch": point.position[0],
            "base_offset": point.position[1],
            "base_at": point.at,
            "base_rebalance_mode": RebalanceMode.INCREMENTAL,
            "begins_block": None,
            "block_until_generation_id": None,
            "block_until_at": None,
            "unfinished_since_at": found.since_at,
            "unfinished_stalls": found.stalls,
            "unfinished_rebalances": found.rebalances,
            "state": found.state,
        }


def epoch_border(point: StatePoint, last_owner: dict[Resource, str], opened_at: int | None) -> EpochBorder | None:
    """Return the state at a point, or None if no point lies there unless the group is at rest.

    `opened_at` is the time of the first epoch after the last completed one.
    """
    if point.copied is None:
        return None
    unsettled = UnsettledState(
        state=point.state,
        assigned_epoch=point.coordinator.assigned_epoch,
        behind=frozenset(point.coordinator.behind),
        opened_at=opened_at,
    )
    return EpochBorder(point=point, copied=point.copied, snapshot=snapshot(point, dict(last_owner), unsettled))


def settle(reader: EpochReader, points: Sequence[StatePoint]) -> None:
    """Remove each border if a later record can change an epoch or revocation from before it.

    `reader` has read all records. A border that remains is permanent: its epoch is not the newest, and all members have
    reached it.
    """
    coordinator, late = reader.coordinator, list(reader.late)
    owed = min((epoch.position for owed in coordinator.owed.values() for epoch in owed), default=END)
    revoking = min((each.record.position for given in coordinator.revoking.values() for each in given), default=END)
    lowest: dict[int, int] = {}
    for point in reversed(points):
        incarnation = point.epoch.incarnation
        while late and late[-1].record.position >= point.position:
            each = late.pop()
            lowest[each.incarnation] = min(each.number, lowest.get(each.incarnation, each.number))
        is_current = reader.is_alive and reader.history.incarnation == incarnation
        point.is_border = (
            point.is_border
            and point.next < reader.history.epochs[-1].position
            and point.next < owed
            and point.position <= revoking
            and (not is_current or (coordinator.assigned_epoch or 0) >= point.number)
            # The stall of a late revocation belongs to an epoch before the point.
            and point.number <= lowest.get(incarnation, point.number)
        )


def resume_within(timeline: Timeline, fields: Fields) -> Snapshot:
    """Restore the owners, the commits and the stalls of a group that was not at rest, and return the rest."""
    known = from_fields(fields["snapshot"])
    timeline.base_at = known.at
    timeline.last_owner.update(known.last_owner)
    restore(timeline.ownership, fields, known.incarnation)
    return known


def copied_before(copied: Copied, position: Position) -> Copied:
    """Return the copy without first commits at or after a position."""
    stalls = stalls_of(copied.fields)
    for stall in stalls:
        if stall["first_commit"] is not None and stall["first_commit"].position >= position:
            stall["first_commit"] = None
    return Copied(copied.fields | {"stalls": [[*stall.values()] for stall in stalls]}, copied.live)
