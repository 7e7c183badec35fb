"""Stop-the-world windows of classic groups: from the moment a resource's owner stopped until somebody had it again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from pipelines.silver.generations import Generation, Replacement
from pipelines.silver.history import Commits, Point, Position, Resource
from pipelines.silver.lines import Story
from pipelines.silver.stops import (
    Departure,
    Stop,
    Told,
    Work,
    departed,
    departure,
    halted,
    replaced,
    stayed,
    work_by_member,
)
from pipelines.silver.workers import WorkerLog
from schemas.coordinator_log import EventKind
from schemas.states import Evidence, RebalanceMode, StallCause

END: Position = (1 << 31, 1 << 62)

APPEND_MS = 5_000
"""offsets.commit.timeout.ms: an assignment that is not stored and handed out within it fails the rebalance."""

FIRST_COMMIT_MS = 600_000
"""A consumer has polled, and committed what it did, within its max.poll.interval.ms, 5 minutes by default. Of a group
whose coordinator assigns, later commits are no first ones after a stop."""


@dataclass(slots=True, kw_only=True)
class Stall:
    """One window. `resumed_*` are None while nobody has the resource; `resumed` is the estimate where that is not the
    earliest moment.

    `config_offset` is how far Connect's configuration had been read when the resource still ran; a window `is_void`
    whose resource was deleted meanwhile, as `resumed_by` shows.
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

    @property
    def is_lost(self) -> bool:
        """Counts as lost; otherwise as idle, or not at all while it lasts."""
        return self.resumed_earliest is not None and self.cause != StallCause.NO_MEMBER

    @property
    def milliseconds(self) -> tuple[int, int, int] | None:
        """Lower bound, estimate, upper bound; None while nobody has it."""
        if self.resumed_earliest is None or self.resumed_latest is None:
            return None
        resumed = self.resumed_earliest if self.resumed is None else self.resumed
        return (
            max(0, self.resumed_earliest - self.stop.latest),
            max(0, resumed - self.stop.estimate),
            max(0, self.resumed_latest - self.stop.earliest),
        )


@dataclass(slots=True, kw_only=True)
class Held:
    """Who has a resource, since which record and when."""

    owner: str
    position: Position
    at: int


class Ownership:
    """Who has what, from one protocol to the next."""

    def __init__(self, commits: Commits, workers: WorkerLog) -> None:
        self.commits, self.workers = commits, workers
        self.incarnation = 0
        self.held: dict[Resource, Held] = {}
        self.open: dict[Resource, Stall] = {}
        self.closed: dict[Resource, Stall] = {}
        self.stalls: list[Stall] = []
        self.resumed: list[Stall] = []

    def begin(self, incarnation: int) -> None:
        """A new incarnation knows nothing of the one before."""
        if incarnation != self.incarnation:
            self.forget()
            self.incarnation = incarnation

    def forget(self) -> None:
        """Nobody is known to have, or to lack, anything."""
        self.held, self.open, self.closed = {}, {}, {}

    def lose_sight(self, position: Position) -> None:
        """From `position` on it is not known who has what, so nothing is said to have stopped or to be still without an
        owner: open windows are void.
        """
        for stall in self.open.values():
            stall.is_void, stall.resumed_by = True, position
        self.forget()

    def keep(self, members: Collection[str]) -> None:
        """Nobody else has anything: what is known of others is out of date."""
        self.held = {resource: held for resource, held in self.held.items() if held.owner in members}

    def stop(
        self,
        resource: Resource,
        stop: Stop,
        cause: StallCause,
        by: Position,
        incarnation: int,
        number: int,
        *,
        until: Position | None = None,
    ) -> Stall:
        """`by` shows the resource gone; commits before `until` (or before `by`) are its owner's."""
        held = self.held.pop(resource)
        segment = self.commits.segment(resource, held.position, until or by)
        stall = Stall(
            incarnation=incarnation,
            stopped_by=by,
            resource=resource,
            generation=number,
            owner=held.owner,
            stop=stop,
            cause=cause,
            last_commit=segment.last if segment else None,
        )
        self.open[resource] = stall
        self.stalls.append(stall)
        return stall

    def give(
        self,
        got: dict[Resource, str],
        at: int,
        position: Position,
        firsts: Mapping[Resource, Point],
        limit: int,
        number: int,
        started: dict[str, int] | None = None,
    ) -> list[Stall]:
        """Resources that `position` handed out; returns the windows that end so. `firsts` are first commits since,
        `limit` is a time by which a member must have had them. `started`: when a member says that it had started its
        own.
        """
        proof: dict[str, int] = dict(started or {})
        for resource, point in firsts.items():
            proof[got[resource]] = min(point.at, proof.get(got[resource], point.at))
        closed = []
        for resource, owner in got.items():
            self.held[resource] = Held(owner=owner, position=position, at=at)
            stall = self.open.pop(resource, None)
            if stall is None:
                continue
            self.closed[resource] = stall
            closed.append(stall)
            stall.resumed_generation, stall.new_owner, stall.first_commit = number, owner, firsts.get(resource)
            stall.resumed_by, stall.resumed_earliest = position, at
            stall.resumed_latest = max(at, min(proof.get(owner, limit), limit))
            if started and owner in started:
                stall.resumed = stall.resumed_latest
        return closed

    def firsts(self, resources: Iterable[Resource], after: Position, before: Position) -> dict[Resource, Point]:
        """The first commits between two records."""
        return {r: first for r in resources if (first := self.commits.first(r, after, before))}

    def never_began(self, resource: Resource) -> None:
        """Its owner did not learn in time that it was given: whoever missed it went on missing it."""
        held = self.held.pop(resource)
        stall = self.closed.pop(resource, None)
        if stall is not None and stall.resumed_by == held.position:
            stall.resumed_generation = stall.resumed_by = stall.new_owner = stall.first_commit = None
            stall.resumed = stall.resumed_earliest = stall.resumed_latest = None
            self.open[resource] = stall


def stalls(told: Sequence[Told], ownership: Ownership) -> None:
    """Adds every window of these generations, in the order in which the resources stopped."""
    for each, after in zip_longest(told, told[1:]):
        g, following = each.generation, after.generation if after is not None else None
        ownership.begin(g.incarnation)
        if g.is_closed:
            ownership.lose_sight(g.position)
        _take(ownership, each, following)
        ends = [r.record.position for r in g.replacements] + [following.position if following else END]
        _give(ownership, g, ends[0], following)
        for change, end in zip(g.replacements, ends[1:], strict=True):
            _replace(ownership, g, change, end)
        _forget_deleted(ownership, g)


def _take(o: Ownership, told: Told, following: Generation | None) -> None:
    """Close what its owner gave up for this generation."""
    g, story, done = told
    previous = g.previous
    if previous is None:
        return
    members, config_offset, position = previous.final_members, previous.config_offset, g.position
    is_piecemeal = _is_piecemeal(g, previous)
    gone: dict[str, tuple[Departure, Stop]] = {}
    for resource, held in list(o.held.items()):
        if is_piecemeal and _goes_on(o, g, previous, resource):
            continue
        owner = held.owner
        back = owner in g.members
        if back and is_piecemeal:
            stop, cause = _revoked(resource, owner, g, following, o.workers), StallCause.MOVED
        else:
            if owner not in gone:
                how = departure(members[owner], story)
                gone[owner] = how, _stop(owner, how, done[owner], story, g, o.workers)
            how, stop = gone[owner]
            cause = _cause(g, resource, back=back, gone=how, done=done[owner])
        if story.failover is not None and cause in (StallCause.MOVED, StallCause.EAGER_BARRIER):
            cause = StallCause.FAILOVER
        stall = o.stop(resource, stop, cause, position, g.incarnation, g.number)
        stall.config_offset = config_offset


def _is_piecemeal(g: Generation, previous: Generation) -> bool:
    """Members go on with what they keep. Connect workers of an eager generation have stopped all before they join."""
    return g.mode == RebalanceMode.COOPERATIVE or (
        g.mode == RebalanceMode.INCREMENTAL and previous.mode != RebalanceMode.EAGER
    )


def _goes_on(o: Ownership, g: Generation, previous: Generation, resource: Resource) -> bool:
    """The resource did not stop for this generation, whose members go on with what they keep."""
    owner, new = o.held[resource].owner, g.owners.get(resource)
    if g.mode == RebalanceMode.COOPERATIVE:
        return new == owner and owner in g.members
    if owner not in g.members:
        return _goes_on_renamed(o, g, resource, new)
    if resource not in _brought(g, owner) and resource not in _brought(previous, owner):
        o.never_began(resource)
        return True
    return new == owner and resource in _brought(g, owner)


def _goes_on_renamed(o: Ownership, g: Generation, resource: Resource, new: str | None) -> bool:
    """A Connect worker that goes on under another member id says itself that the resource ran all the while."""
    if new is None or resource not in _brought(g, new):
        return False
    o.held[resource] = replace(o.held[resource], owner=new)
    return True


def _brought(g: Generation, member_id: str) -> frozenset[Resource]:
    return g.members[member_id].owned or frozenset()


def _stop(owner: str, gone: Departure, done: Work, story: Story, g: Generation, workers: WorkerLog) -> Stop:
    if owner in g.members:
        return stayed(owner, done, story, g)
    assert g.previous is not None
    began = workers.stopping(owner, g.previous)
    return departed(gone, done, g) if began is None else halted(began, gone, g)


def _revoked(resource: Resource, owner: str, g: Generation, following: Generation | None, workers: WorkerLog) -> Stop:
    """A member learns with its assignment what it has to give up, and rejoins when it has."""
    if g.mode == RebalanceMode.INCREMENTAL and resource not in _brought(g, owner):
        # It gave up by itself, for it had lost sight of the coordinator, and came back without it.
        assert g.previous is not None
        return Stop.within(g.previous.synced_at, g.joined_at, g.joined_at, Evidence.INFERRED)
    said = workers.revoked(owner, g)
    if said is not None:
        return Stop.within(g.synced_at, said, (g.synced_at + said) // 2, Evidence.OBSERVED)
    latest = g.synced_at + APPEND_MS
    if following is not None and owner in following.members:
        latest = min(latest, following.joined_at)
    return Stop.within(g.synced_at, latest, g.synced_at, Evidence.OBSERVED)


def _cause(g: Generation, resource: Resource, *, back: bool, gone: Departure, done: Work) -> StallCause:
    if g.is_empty:
        return StallCause.NO_MEMBER
    lost = gone.line is not None and gone.line.kind in (
        EventKind.SESSION_EXPIRED,
        EventKind.REMOVED_NOT_REJOINED,
        EventKind.REMOVED_NOT_SYNCED,
    )
    if not back and (lost or gone.was_poll_timeout(done)):
        return StallCause.MEMBER_LOST
    if not back and gone.line is not None and gone.line.kind == EventKind.STATIC_REPLACED:
        return StallCause.STATIC_RESTART
    if resource in g.waiting:
        return StallCause.CONNECT_DELAY
    piecemeal = g.previous is not None and _is_piecemeal(g, g.previous)
    return StallCause.MOVED if piecemeal else StallCause.EAGER_BARRIER


def _give(o: Ownership, g: Generation, until: Position, following: Generation | None) -> None:
    fresh = {r: owner for r, owner in g.owners.items() if r not in o.held or o.held[r].owner != owner}
    limit = g.synced_at + APPEND_MS
    if following is not None and following.incarnation == g.incarnation:
        limit = min(limit, max(g.synced_at, following.synced_at))
    started = {m: at for m in g.members if (at := o.workers.started(m, g)) is not None}
    back = {r: stall for r in fresh if (stall := o.open.get(r)) and r in _brought(g, fresh[r])}
    o.give(fresh, g.synced_at, g.position, o.firsts(fresh, g.position, until), limit, g.number, started)
    if g.mode == RebalanceMode.INCREMENTAL:
        for stall in back.values():
            _ran_on(stall, g)


def _ran_on(stall: Stall, g: Generation) -> None:
    """A Connect worker came back with what was counted as lost: cut off it ran on, frozen it did not; nothing tells."""
    stall.stop = stall.stop._replace(evidence=Evidence.INFERRED)
    stall.resumed_earliest = stall.stop.earliest
    stall.resumed = stall.resumed_latest = max(g.joined_at, stall.stop.estimate)


def _forget_deleted(o: Ownership, g: Generation) -> None:
    """Nobody lacks a connector or task that is no more.

    Connect's leader hands out at once whatever is configured and runs nowhere, except what this very generation revoked
    and, while a delay runs, what got lost. So a resource left over by a leader that had read the configuration at least
    as far as when it ran is not configured any more (`IncrementalCooperativeAssignor.performTaskAssignment`).
    """
    if g.mode != RebalanceMode.INCREMENTAL or g.previous is None or any(w.is_refused for w in g.workers):
        return
    left_over, config_offset = o.open.keys() - g.revoked, g.config_offset
    if g.delay_ms:
        left_over &= g.previous.revoked
    for resource in left_over:
        stall = o.open[resource]
        if config_offset is not None and stall.config_offset is not None and config_offset >= stall.config_offset:
            del o.open[resource]
            stall.is_void, stall.resumed_by = True, g.position


def _replace(o: Ownership, g: Generation, change: Replacement, until: Position) -> None:
    """W3: the instance's resources stood still from its last work until the new process came."""
    at = change.record.at if change.record.at is not None else g.synced_at
    mine = [r for r, h in o.held.items() if h.owner == change.old]
    stop = replaced(work_by_member(g, o.commits, change.record.position)[change.old], at)
    for resource in mine:
        o.stop(resource, stop, StallCause.STATIC_RESTART, change.record.position, g.incarnation, g.number)
    firsts = o.firsts(mine, change.record.position, until)
    o.give(dict.fromkeys(mine, change.member.member_id), at, change.record.position, firsts, at + APPEND_MS, g.number)
