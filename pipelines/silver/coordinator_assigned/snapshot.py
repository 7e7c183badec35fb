"""The state of a group whose coordinator assigns, as JSON. A rebuild resumes from it without earlier records.

A classic generation has all of its members in one record. In the other protocols, a member's metadata may be months
older than the epoch. So the state that the coordinator would have loaded is stored: of a group at rest with the next
episode, and otherwise in `resume_points`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.silver.coordinator_assigned.epochs import CurrentAssignment, EpochMember, TargetAssignment
from pipelines.silver.coordinator_assigned.state import CoordinatorState
from pipelines.silver.coordinator_assigned.tasks import TaskSources
from pipelines.silver.history import Point, Position, Resource
from pipelines.silver.stalls import CurrentOwner
from schemas.states import GroupState

Resources = dict[str, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsettledState:
    """What is also needed of a group that is not at rest.

    `assigned_epoch` is the epoch of the target assignment, which the members in `behind` have not reached. `opened_at`
    is the time of the first epoch after the last completed one, or None.
    """

    state: GroupState
    assigned_epoch: int | None
    behind: frozenset[str]
    opened_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state before the record at `position`, which is the first of the write that began the next epoch.

    `at` is the time of the last record before it. `joined_at`, `synced_at` and `completed_at` are those of the current
    epoch, and `since` is when the group became stable. `names` are the names of topic ids in records and commits before
    `position`. `matched` has the topics that regular expressions match. `last_owner` has the last assigned owner of
    each resource. `points` has the commits of each resource since its owner got it that `history.CommitSegment` needs.
    `unsettled` is None for a group at rest; otherwise the owners and commits are stored elsewhere (`carried_epochs`).
    `sources` is set only for a Streams group.
    """

    position: Position
    at: int
    incarnation: int
    joined_at: int
    synced_at: int | None
    completed_at: int | None
    since: int | None
    coordinator: CoordinatorState
    names: Mapping[str, str]
    matched: Mapping[str, frozenset[str]]
    current: Mapping[Resource, CurrentOwner]
    last_owner: Mapping[Resource, str]
    points: Mapping[Resource, Sequence[Point]]
    unsettled: UnsettledState | None = None
    sources: TaskSources | None = None


def to_json(of: Snapshot) -> str:
    """Return the snapshot as JSON. Equal states have equal text."""
    return json.dumps(to_fields(of), sort_keys=True, separators=(",", ":"))


def to_fields(of: Snapshot) -> dict[str, Any]:
    """Return the snapshot as JSON values."""
    now = of.coordinator
    fields = {
        name: getattr(of, name)
        for name in (
            "position", "at", "incarnation", "joined_at", "synced_at", "completed_at", "since", "names",
        )
    }  # fmt: skip
    fields |= {
        "number": now.number,
        "metadata_hash": now.metadata_hash,
        "target_ids": now.target_ids,
        "seats": {m: asdict(member) | {"topics": sorted(member.topics)} for m, member in now.members.items()},
        "targets": {member: _by_topic(target.active) for member, target in now.targets.items()},
        "currents": {
            member: [current.epoch, current.is_done, _by_topic(current.assigned), _by_topic(current.pending)]
            for member, current in now.currents.items()
        },
        "matched": {expression: sorted(topics) for expression, topics in of.matched.items()},
        "held": [
            [*resource, current.owner, current.position, current.at, of.points.get(resource, [])]
            for resource, current in sorted(of.current.items())
        ],
        "last_owner": [[*resource, owner] for resource, owner in sorted(of.last_owner.items())],
    }
    if of.unsettled is not None:
        fields["unsettled"] = asdict(of.unsettled) | {"behind": sorted(of.unsettled.behind)}
    if of.sources is not None:
        fields["streams"] = of.sources.to_fields() | {
            "topology": now.topology,
            "validated": now.validated,
            "roles": {
                member: [_by_topic(target.standby), _by_topic(target.warmup)] for member, target in now.targets.items()
            },
        }
    return fields


def from_json(text: str) -> Snapshot:
    """Return the snapshot that `to_json` wrote."""
    return from_fields(json.loads(text))


def from_fields(fields: dict[str, Any]) -> Snapshot:
    """Return the snapshot that `to_fields` wrote."""
    number, unsettled, streams = fields["number"], _unsettled(fields.get("unsettled")), fields.get("streams", {})
    roles = streams.get("roles", {})
    coordinator = CoordinatorState(
        number=number,
        assigned_epoch=number if unsettled is None else unsettled.assigned_epoch,
        behind=set() if unsettled is None else set(unsettled.behind),
        metadata_hash=fields["metadata_hash"],
        members={
            m: EpochMember(**member | {"topics": frozenset(member["topics"])}) for m, member in fields["seats"].items()
        },
        targets={m: _target(target, *roles.get(m, ({}, {}))) for m, target in fields["targets"].items()},
        topology=streams.get("topology"),
        validated=streams.get("validated"),
        target_ids=fields["target_ids"],
        currents={
            m: CurrentAssignment(
                epoch=epoch, is_done=is_done, assigned=_resources(assigned), pending=_resources(pending)
            )
            for m, (epoch, is_done, assigned, pending) in fields["currents"].items()
        },
    )
    return Snapshot(
        position=_position(fields["position"]),
        at=fields["at"],
        incarnation=fields["incarnation"],
        joined_at=fields["joined_at"],
        synced_at=fields["synced_at"],
        completed_at=fields["completed_at"],
        since=fields["since"],
        coordinator=coordinator,
        names=fields["names"],
        matched={expression: frozenset(topics) for expression, topics in fields["matched"].items()},
        current={
            (name, index): CurrentOwner(owner=owner, position=_position(position), at=at)
            for name, index, owner, position, at, _ in fields["held"]
        },
        last_owner={(name, index): owner for name, index, owner in fields["last_owner"]},
        points={
            (name, index): [Point(_position(position), at, committed) for position, at, committed in points]
            for name, index, *_, points in fields["held"]
        },
        unsettled=unsettled,
        sources=TaskSources.from_fields(streams) if streams else None,
    )


def _target(active: Resources, standby: Resources, warmup: Resources) -> TargetAssignment:
    return TargetAssignment(active=_resources(active), standby=_resources(standby), warmup=_resources(warmup))


def _unsettled(fields: dict[str, Any] | None) -> UnsettledState | None:
    if fields is None:
        return None
    return UnsettledState(**fields | {"state": GroupState(fields["state"]), "behind": frozenset(fields["behind"])})


def _position(fields: Sequence[int]) -> Position:
    log_epoch, offset = fields
    return log_epoch, offset


def _by_topic(resources: Iterable[Resource]) -> Resources:
    out: Resources = {}
    for name, index in sorted(resources):
        out.setdefault(name, []).append(index)
    return out


def _resources(fields: Resources) -> frozenset[Resource]:
    return frozenset((name, index) for name, indexes in fields.items() for index in indexes)
