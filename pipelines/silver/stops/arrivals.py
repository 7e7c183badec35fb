"""Owners that have not committed since they joined, and the stalls that their assignments seem to end.

An owner that is gone again without a commit, although records waited, did no work: a member that crashes in a loop is
assigned its resources again and again, and resumes none of them. Its stalls are then one stall. An owner with nothing
to read does not commit either, so only stalls of resources whose last owner committed progress until it stopped count.
In Kafka Streams, this holds for each task: a member works on one while it restores the state of another. It also holds
for what the coordinator assigns to a member whose poll loop is blocked: its heartbeats acknowledge the assignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum

from pipelines.silver.history import CommitHistory, Position, Resource
from pipelines.silver.stops.stall import Stall

Key = str | tuple[str, Resource]
"""A member, or a member and one of its resources: a task of a Streams group, or what a blocked member was assigned."""

RECORDS = 3
"""Expected number of records at the earlier rate from which records count as waiting for certain: if 3 are expected at
an even rate, none arrives in one of 20 cases."""


@dataclass(slots=True, kw_only=True)
class Tenure:
    """The time for which a new member had a resource: it began with the end of stall `ended`, at `position`.

    `stopped` is the stall with which it gave up the resource, at `until`. They are None while it has the resource.
    """

    resource: Resource
    position: Position
    ended: Stall
    stopped: Stall | None = None
    until: Position | None = None


@dataclass(slots=True)
class Arrivals:
    """The tenures of members that have not committed yet."""

    tenures: dict[Key, list[Tenure]] = field(default_factory=dict)

    def stop(self, owner: str, stopped: Stall, until: Position) -> None:
        """Note that an owner gave up a resource before `until`."""
        only_this = (owner, stopped.resource)
        for tenure in (*self.tenures.get(owner, ()), *self.tenures.get(only_this, ())):
            if tenure.resource == stopped.resource and tenure.stopped is None:
                tenure.stopped, tenure.until = stopped, until
                stopped.rate = stopped.rate or tenure.ended.rate
        if only_this in self.tenures:
            self.leave(only_this, stopped.stop.estimate)

    def prove(self, commits: CommitHistory, before: Position, committed: Iterable[str] = ()) -> None:
        """Forget the members that committed before a position; `committed` are known to have."""
        for member_id in committed:
            self.tenures.pop(member_id, None)
        for owner, tenures in list(self.tenures.items()):
            if any(commits.first(t.resource, t.position, t.until or before) for t in tenures):
                del self.tenures[owner]

    def leave(self, owner: Key, at: int) -> None:
        """Join the stalls around the tenures of a member that is gone at `at` without a commit."""
        tenures = [t for t in self.tenures.pop(owner, ()) if t.stopped is not None]
        expected = fsum((t.ended.rate or 0) * (at - t.ended.stop.estimate) for t in tenures)
        for tenure in tenures:
            assert tenure.stopped is not None
            if expected >= RECORDS:
                tenure.stopped.root.join(tenure.ended)
            else:
                tenure.stopped.rate = None
