"""The state of a quiescent consumer-protocol group as JSON. A rebuild resumes from it without earlier records.

A classic generation has all of its members in one record. In this protocol, a member's metadata may be months older
than the epoch. So the state that the coordinator would have loaded is stored with the next episode.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.silver.coordinator_assigned.epochs import CurrentAssignment, EpochMember, TargetAssignment
from pipelines.silver.coordinator_assigned.state import CoordinatorState
from pipelines.silver.history import Point, Position, Resource
from pipelines.silver.stalls import CurrentOwner

Resources = dict[str, list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state before the record at `position`, which is the first of the write that began the next epoch.

    `at` is the time of the last record before it. `joined_at`, `synced_at` and `completed_at` are those of the current
    epoch, and `since` is when the group became stable. `names` are the names of topic ids in records and commits before
    `position`. `matched` has the topics that regular expressions match. `last_owner` has the last assigned owner of
    each resource. `points` has the commits of each resource since its owner got it that `history.CommitSegment` needs.
    """

    position: Position
    at: int
    incarnation: int
    joined_at: int
    synced_at: int | None
    completed_at: int
    since: int | None
    coordinator: CoordinatorState
    names: Mapping[str, str]
    matched: Mapping[str, frozenset[str]]
    current: Mapping[Resource, CurrentOwner]
    last_owner: Mapping[Resource, str]
    points: Mapping[Resource, Sequence[Point]]


def to_json(of: Snapshot) -> str:
    """Return the snapshot as JSON. Equal states have equal text."""
    now = of.coordinator
    fields = {
        name: getattr(of, name)
        for name in (
            "position", "at", "incarnation", "joined_at", "synced_at", "completed_at", "since", "names",
        )
    }  # fmt: skip
    return json.dumps(
        fields
        | {
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
        },
        sort_keys=True,
        separators=(",", ":"),
    )


def from_json(text: str) -> Snapshot:
    """Return the snapshot that `to_json` wrote."""
    fields: dict[str, Any] = json.loads(text)
    number = fields["number"]
    coordinator = CoordinatorState(
        number=number,
        assigned_epoch=number,
        metadata_hash=fields["metadata_hash"],
        members={
            m: EpochMember(**member | {"topics": frozenset(member["topics"])}) for m, member in fields["seats"].items()
        },
        targets={m: TargetAssignment(active=_resources(target)) for m, target in fields["targets"].items()},
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
    )


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
