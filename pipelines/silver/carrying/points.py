"""The state of a classic group at a point where it is not at rest, with which a rebuild resumes there.

The rows before the point do not change any more, except those that the state contains: unfinished stalls, and the
episodes that they or the last generation belong to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from typing import NamedTuple, Protocol

from pipelines.silver.carrying.episode import Episode, Fields
from pipelines.silver.carrying.ownership import points_in, points_of, stalls_of
from pipelines.silver.carrying.valid_points import Block
from pipelines.silver.generations import Generation
from pipelines.silver.history import CommitHistory, Point, Position, Resource
from pipelines.silver.stalls import CurrentOwner
from pipelines.silver.stops.stall import Stall
from schemas.rows import ResumePointOfGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """What was known right before generation `following`, which belongs to `block`: the previous one was over."""

    following: Generation
    before: Generation
    fields: Fields
    live: Sequence[Stall]
    last_owner: Mapping[Resource, str]
    owned_at: Mapping[Resource, Position]
    block: Block
    begins_block: bool


class CarriedState(Protocol):
    """The state at a point of a group whose coordinator assigns (`coordinator_assigned.carried_epochs`)."""

    @property
    def live(self) -> Sequence[Stall]:
        """The stalls that later records may still change."""

    def row(self, known: Sequence[Fields], commits: CommitHistory) -> ResumePointOfGroup:
        """Return the row of `resume_points`; `known` are the sums of the episodes that may still change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """The state at a point, as it was stored with the point.

    `live` are the unfinished stalls, by the position that begins them and their resource.
    """

    fields: Fields
    live: frozenset[tuple[Position, Resource]]
    episodes: list[Episode]
    waiting: frozenset[Resource]
    last_owner: dict[Resource, str]
    owned_at: dict[Resource, Position]
    commits: dict[Resource, list[Point]]

    @property
    def is_of_coordinator(self) -> bool:
        """Whether it is the state of a group whose coordinator assigns (`coordinator_assigned.carried_epochs`)."""
        return "snapshot" in self.fields

    @classmethod
    def of(cls, text: str) -> Carried:
        """Return the state in a row of `resume_points`."""
        fields = json.loads(text)
        owners = [((name, index), owner, (epoch, offset)) for name, index, owner, (epoch, offset) in fields["owners"]]
        return cls(
            fields=fields,
            live=frozenset(((epoch, offset), (name, index)) for (epoch, offset), (name, index) in fields["live"]),
            episodes=[Episode.from_fields(each) for each in fields["episodes"]],
            waiting=frozenset((name, index) for name, index in fields["waiting"]),
            last_owner={resource: owner for resource, owner, _ in owners},
            owned_at={resource: at for resource, _, at in owners},
            commits=points_in(fields),
        )


def point_row(
    of: Border, known: Sequence[Fields], rest: Generation | None, commits: CommitHistory
) -> ResumePointOfGroup:
    """Return the row of `resume_points`.

    Args:
        of: the state at the point.
        known: the sums of the episodes that may still change.
        rest: the last generation before the point from which a rebuild may resume without a state, if it was read.
        commits: the group's commits.
    """
    before, following = of.before, of.following
    fields, since = of.fields, (-1, -1)
    if rest is not None:
        fields, since = _since_rest(fields, rest.position, rest.owners, rest.synced_at), rest.position
    owners = [
        [*resource, owner, of.owned_at[resource]]
        for resource, owner in sorted(of.last_owner.items())
        if of.owned_at[resource] >= since
    ]
    more = {"waiting": sorted(before.waiting), "owners": owners}
    found = unfinished(fields | more, known, commits, before.position, before.completed_at)
    return {
        "incarnation": following.incarnation,
        "first_generation_id": following.number,
        "settled_at": following.completed_at,
        "log_epoch": following.position[0],
        "source_offset": following.position[1],
        "base_log_epoch": before.position[0],
        "base_offset": before.position[1],
        "base_at": before.completed_at,
        "base_rebalance_mode": before.mode,
        "begins_block": of.begins_block,
        "block_until_generation_id": of.block.until_generation_id,
        "block_until_at": of.block.until_at,
        "unfinished_since_at": found.since_at,
        "unfinished_stalls": found.stalls,
        "unfinished_rebalances": found.rebalances,
        "state": found.state,
    }


def _since_rest(fields: Fields, rest: Position, owners: Mapping[Resource, str], at: int) -> Fields:
    """Return the state without facts from before a rest, from which a rebuild does not know them.

    Args:
        fields: the state that `ownership.copied` returned.
        rest: the generation from which a rebuild may resume without a state.
        owners: the owners in that generation.
        at: when its assignment was stored.
    """
    current = [
        [name, index, owner, max(position, rest), since if position >= rest else at]
        for name, index, owner, position, since in fields["current"]
        if position >= rest or (name, index) in owners
    ]
    closed = [entry for entry in fields["closed"] if entry[2] is not None or entry[3] > rest]
    return fields | {"current": current, "closed": closed}


class Unfinished(NamedTuple):
    """The columns of `resume_points` that say what later records may still change, and the state to resume with."""

    since_at: int
    stalls: str
    rebalances: str
    state: str


def unfinished(
    fields: Fields, known: Sequence[Fields], commits: CommitHistory, position: Position, at: int
) -> Unfinished:
    """Return what is unfinished before a position and a time in milliseconds.

    `fields` are those of `ownership.copied` and further ones; `known` are the sums of the episodes that may still
    change.
    """
    current = {
        (name, index): CurrentOwner(owner=owner, position=since, at=since_at)
        for name, index, owner, since, since_at in fields["current"]
    }
    points = points_of(commits, current, position)
    stalls = [stall for stall in stalls_of(fields) if not stall["is_void"]]
    state = fields | {
        "points": [[*resource, found] for resource, found in sorted(points.items())],
        "live": [[stall["stopped_by"], stall["resource"]] for stall in stalls],
        "episodes": known,
    }
    begun = [stall["stop"].latest for stall in stalls] + [each["row"]["started_at_latest"] for each in known]
    return Unfinished(
        since_at=min([at, *begun]),
        stalls=_listed(map(_stall_key, stalls)),
        rebalances=_listed(str(each["row"]["first_generation_id"]) for each in known),
        state=json.dumps(state, sort_keys=True, separators=(",", ":")),
    )


def _stall_key(stall: Fields) -> str:
    """Return the key of an unfinished stall, as `resume_points.after_base` has it in SQL."""
    return f"{stall['stopped_by'][1]}/{stall['resource'][1]}/{_digest(stall['resource'][0])}"


def _listed(parts: Iterable[str]) -> str:
    """Return the parts as one text in which SQL finds each as `|part|`."""
    return "".join(f"|{part}" for part in parts) + "|"


def _digest(name: str) -> str:
    """Return the digest that SQL's `md5` returns. A digest, unlike a name, never contains the separators."""
    return md5(name.encode(), usedforsecurity=False).hexdigest()
