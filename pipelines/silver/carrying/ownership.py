"""The owners and unfinished stalls of a group as JSON values, and back.

A stall is live while later records may still change it: it is open, it was ended by the newest generation, whose
assignment may be undone, it is not known yet whether the owner after it resumed (`stops.arrivals`), or, if the
coordinator assigns, it waits for a first commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from operator import attrgetter
from typing import Any, NamedTuple

from pipelines.silver.carrying.episode import Fields
from pipelines.silver.history import CommitHistory, Point, Position, Resource
from pipelines.silver.stalls import CurrentOwner, Ownership
from pipelines.silver.stops.arrivals import Key, Tenure
from pipelines.silver.stops.stall import Stall
from pipelines.silver.stops.stop import Stop
from schemas.states import Evidence, StallCause

STALL = tuple(field.name for field in fields_of(Stall) if field.name != "joined_to")
VALUES = attrgetter(*STALL)


class Copied(NamedTuple):
    """A copy of the state as JSON values, and the live stalls themselves, which go on changing."""

    fields: Fields
    live: list[Stall]


def copied(o: Ownership, since: Position) -> Copied:
    """Return the state right after the generation at `since`."""
    live = _live(o, since)
    numbers = {id(stall): number for number, stall in enumerate(live)}
    fields: Fields = {
        "current": [[*resource, c.owner, c.position, c.at] for resource, c in sorted(o.current.items())],
        "stalls": [list(VALUES(stall)) for stall in live],
        "open": sorted(numbers[id(stall)] for stall in o.open.values()),
        "closed": [
            [*resource, numbers.get(id(stall)), stall.stopped_by, stall.last_commit]
            for resource, stall in sorted(o.closed.items())
            if id(stall) in numbers or stall.last_commit is not None
        ],
        "tenures": sorted(
            [
                *((key, "", NO_INDEX) if isinstance(key, str) else (key[0], *key[1])),
                sorted(
                    [
                        *tenure.resource,
                        tenure.position,
                        numbers[id(tenure.ended)],
                        None if tenure.stopped is None else numbers[id(tenure.stopped.root)],
                        tenure.until,
                    ]
                    for tenure in tenures
                ),
            ]
            for key, tenures in o.arrivals.tenures.items()
        ),
    }
    if o.resumed:
        fields["resumed"] = sorted(numbers[id(stall)] for stall in o.resumed)
    return Copied(fields, live)


def stalls_of(fields: Fields) -> list[Fields]:
    """Return the fields of each stall that `copied` returned, by name."""
    return [dict(zip(STALL, values, strict=True)) for values in fields["stalls"]]


def restore(o: Ownership, fields: Fields, incarnation: int) -> None:
    """Put the state that `copied` returned into `o`, which is new."""
    o.incarnation = incarnation
    o.current = {
        (name, index): CurrentOwner(owner=owner, position=_position(position), at=at)
        for name, index, owner, position, at in fields["current"]
    }
    o.stalls = [_stall(stall) for stall in stalls_of(fields)]
    o.open = {o.stalls[number].resource: o.stalls[number] for number in fields["open"]}
    o.resumed = [o.stalls[number] for number in fields.get("resumed", ())]
    for name, index, number, stopped_by, commit in fields["closed"]:
        resource = (name, index)
        known = o.stalls[number] if number is not None else _over(resource, _position(stopped_by), _point(commit))
        o.closed[resource] = known
    for owner, name, index, tenures in fields["tenures"]:
        key: Key = owner if name == "" and index == NO_INDEX else (owner, (name, index))
        o.arrivals.tenures[key] = [
            Tenure(
                resource=(of, number),
                position=_position(position),
                ended=o.stalls[ended],
                stopped=None if stopped is None else o.stalls[stopped],
                until=None if until is None else _position(until),
            )
            for of, number, position, ended, stopped, until in tenures
        ]


NO_INDEX = -2
"""Index of a tenure's key that names no resource; -1 is a connector."""


def points_in(fields: Fields) -> dict[Resource, list[Point]]:
    """Return the commits by resource that `pipelines.silver.carrying.points` added to the owners."""
    return {
        (name, index): [Point(_position(position), at, committed) for position, at, committed in points]
        for name, index, points in fields["points"]
    }


def points_of(
    commits: CommitHistory, current: Mapping[Resource, CurrentOwner], before: Position
) -> dict[Resource, list[Point]]:
    """Return by resource the commits since its owner got it, as far as `CommitHistory.segment` needs them."""
    found = {resource: commits.segment(resource, each.position, before) for resource, each in current.items()}
    return {
        resource: sorted({point for point in segment if point is not None})
        for resource, segment in found.items()
        if segment is not None
    }


def _live(o: Ownership, since: Position) -> list[Stall]:
    found = [*o.open.values(), *o.resumed]
    found += [stall for stall in o.closed.values() if stall.resumed_by is not None and stall.resumed_by >= since]
    for tenures in o.arrivals.tenures.values():
        found += [tenure.ended for tenure in tenures]
        found += [tenure.stopped.root for tenure in tenures if tenure.stopped is not None]
    each = {id(stall): stall for stall in found}.values()
    return sorted(each, key=lambda s: (s.stopped_by, s.resource, s.is_void, s.resumed_by or (-1, -1)))


def _stall(values: dict[str, Any]) -> Stall:
    earliest, latest, estimate, evidence = values["stop"]
    name, index = values["resource"]
    return Stall(
        **values
        | {
            "resource": (name, index),
            "stopped_by": _position(values["stopped_by"]),
            "resumed_by": values["resumed_by"] and _position(values["resumed_by"]),
            "stop": Stop(earliest, latest, estimate, Evidence(evidence)),
            "cause": StallCause(values["cause"]),
            "last_commit": _point(values["last_commit"]),
            "first_commit": _point(values["first_commit"]),
        }
    )


def _over(resource: Resource, stopped_by: Position, last_commit: Point | None) -> Stall:
    """Return a stall that is over, of which only the last commit is still needed."""
    return Stall(
        incarnation=0,
        stopped_by=stopped_by,
        resource=resource,
        generation=0,
        owner="",
        stop=Stop(0, 0, 0, Evidence.INFERRED),
        cause=StallCause.MOVED,
        last_commit=last_commit,
    )


def _point(values: Sequence[Any] | None) -> Point | None:
    return None if values is None else Point(_position(values[0]), values[1], values[2])


def _position(values: Sequence[int]) -> Position:
    log_epoch, offset = values
    return log_epoch, offset
