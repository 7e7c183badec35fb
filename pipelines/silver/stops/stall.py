"""One stall: from the time a resource's owner stopped until the resource had an owner that resumed it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.silver.history import Point, Position, Resource
from pipelines.silver.stops.stop import Stop
from schemas.states import Evidence, StallCause

RESTORING = 0.8
"""Share of the time from an assignment until a commit interval before the first commit in which a task was restored.
After it, the task waits for its first record (measured in the lab).
"""


@dataclass(slots=True, kw_only=True)
class Stall:
    """One stall, with times in milliseconds.

    `resumed_*` are None while the resource has no owner. `resumed` is the estimate if it differs from the earliest
    time. `config_offset` is the offset up to which Connect's configuration was read when the resource still ran.
    `is_void` means that the stall does not count, because the resource was deleted in the meantime or its owner is not
    known any more; `resumed_by` is the record that shows it. `rate` is how many records per millisecond the owner had
    committed, or None if it was silent. `joined_to` is the later stall that contains this one, because the owner in
    between did not resume the resource.
    """

    incarnation: int
    stopped_by: Position
    resource: Resource
    generation: int
    owner: str
    stop: Stop
    cause: StallCause
    last_commit: Point | None
    resumed_generation: int | None = None
    resumed_by: Position | None = None
    new_owner: str | None = None
    resumed_earliest: int | None = None
    resumed_latest: int | None = None
    resumed: int | None = None
    first_commit: Point | None = None
    config_offset: int | None = None
    is_void: bool = False
    rate: float | None = None
    joined_to: Stall | None = None

    @property
    def root(self) -> Stall:
        """The stall that contains this one, or itself."""
        stall = self
        while stall.joined_to is not None:
            stall = stall.joined_to
        return stall

    def join(self, earlier: Stall) -> None:
        """Continue an earlier stall, because the owner in between did not resume the resource."""
        self.incarnation, self.generation, self.stopped_by = earlier.incarnation, earlier.generation, earlier.stopped_by
        self.owner, self.last_commit, self.config_offset = earlier.owner, earlier.last_commit, earlier.config_offset
        self.stop, self.rate = earlier.stop._replace(evidence=Evidence.INFERRED), earlier.rate
        if earlier.cause != StallCause.NO_MEMBER:
            self.cause = earlier.cause
        earlier.is_void, earlier.joined_to = True, self

    def restore(self, interval: int) -> None:
        """Take the end from the first commit of a Streams task, which commits every `interval` milliseconds.

        A task processes nothing before its state is restored (`StreamTask.completeRestoration`), and commits within an
        interval after its first record.
        """
        at, first = self.resumed_earliest, self.first_commit
        if at is not None and first is not None:
            self.resumed_latest = max(at, first.at)
            self.resumed = at + round(RESTORING * max(0, first.at - (interval or first.at - at) - at))

    @property
    def milliseconds(self) -> tuple[int, int, int] | None:
        """Lower bound, estimate and upper bound of the duration; None while the resource has no owner."""
        if self.resumed_earliest is None or self.resumed_latest is None:
            return None
        resumed = self.resumed_earliest if self.resumed is None else self.resumed
        return (
            max(0, self.resumed_earliest - self.stop.latest),
            max(0, resumed - self.stop.estimate),
            max(0, self.resumed_latest - self.stop.earliest),
        )


def roots(stalls: Iterable[Stall]) -> list[Stall]:
    """Return the stalls that contain these, each once, without those that do not count."""
    return list({id(stall.root): stall.root for stall in stalls if not stall.root.is_void}.values())
