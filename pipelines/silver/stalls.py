"""Stalls of classic groups: from the time a resource's owner stopped until the resource had an owner again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pipelines.silver.generations import Generation, Replacement
from pipelines.silver.history import ROUND_MS, CommitHistory, CommitSegment, Point, Position, Resource
from pipelines.silver.stops.arrivals import Arrivals, Key, Tenure
from pipelines.silver.stops.commit_activity import LATE_COMMIT_MS
from pipelines.silver.stops.member_stops import APPEND_MS, END, HEARTBEAT_MS, GenerationContext, GenerationStops
from pipelines.silver.stops.stall import Stall
from pipelines.silver.stops.stop import Stop
from schemas.states import Evidence, RebalanceMode, StallCause

FIRST_COMMIT_MS = 600_000
"""Time limit in milliseconds for the first commit after a stall, in groups whose coordinator assigns. A consumer polls
and commits within its max.poll.interval.ms, 5 minutes by default.
"""

State = TypeVar("State")


class CurrentOwner(NamedTuple):
    """The owner of resources, with the record and the time from which it owned them."""

    owner: str
    position: Position
    at: int


class Ownership:
    """The owners of resources and the stalls so far. It continues across protocol changes.

    `undecided` has the positions of records whose stalls depend on what was before the previous generation: it was open
    whether a new member had resumed its resources, or their rate is that over an earlier stall. `restoring` has those
    of them at which the state of a task was still being restored. `resumed` are stalls that may still get their first
    commit, in groups whose coordinator assigns. `is_streams`: the resources are tasks, which work only when their state
    is restored.
    """

    def __init__(self, commits: CommitHistory) -> None:
        self.commits = commits
        self.incarnation = 0
        self.current: dict[Resource, CurrentOwner] = {}
        self.open: dict[Resource, Stall] = {}
        self.closed: dict[Resource, Stall] = {}
        self.stalls: list[Stall] = []
        self.resumed: list[Stall] = []
        self.arrivals = Arrivals()
        self.undecided: set[Position] = set()
        self.restoring: set[Position] = set()
        self.is_streams = False

    def begin(self, incarnation: int) -> None:
        """Begin an incarnation. A new one knows nothing of the previous one."""
        if incarnation != self.incarnation:
            self.forget()
            self.incarnation = incarnation

    def forget(self) -> None:
        """Forget the owners of all resources and the open stalls."""
        self.current, self.open, self.closed = {}, {}, {}
        self.arrivals.tenures.clear()

    def mark_unknown(self, position: Position) -> None:
        """Mark all owners as unknown from `position` on. Open stalls become void, because their end cannot be known."""
        for stall in self.open.values():
            stall.is_void, stall.resumed_by = True, position
        self.forget()

    def keep(self, members: Collection[str]) -> None:
        """Keep only the owners in `members`, because others are out of date."""
        self.current = {resource: current for resource, current in self.current.items() if current.owner in members}

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
        since: Position | None = None,
    ) -> Stall:
        """Begin a stall.

        Args:
            resource: the resource that stopped.
            stop: bounds of the time of the stop.
            cause: why it stopped.
            by: position of the record that shows the resource without its owner.
            incarnation: the group's incarnation.
            number: the generation or epoch.
            until: commits before this position are the owner's; None means `by`.
            since: commits after this position show the owner's rate; None means since it got the resource.
        """
        current = self.current.pop(resource)
        segment = recent = self.commits.segment(resource, current.position, until or by)
        if since is not None and since > current.position:
            recent = self.commits.segment(resource, since, until or by)
        stall = Stall(
            incarnation=incarnation,
            stopped_by=by,
            resource=resource,
            generation=number,
            owner=current.owner,
            stop=stop,
            cause=cause,
            last_commit=segment.last if segment else None,
        )
        if recent is not None:
            ended = self.closed.get(resource) if has_one_round(recent) else None
            earlier = ended.last_commit if ended is not None else None
            stall.rate = _rate(earlier or recent.first, recent, stop.estimate)
            if earlier is not None and stall.rate is not None:
                self.undecided.add(by)
        if self.arrivals.tenures:
            self.arrivals.stop(current.owner, stall, until or by)
        self.open[resource] = stall
        self.stalls.append(stall)
        return stall

    def give(
        self,
        gained: dict[Resource, str],
        at: int,
        position: Position,
        firsts: Mapping[Resource, Point],
        limit: int,
        number: int,
        started: Mapping[str, int] | None = None,
        new: Collection[str] = (),
        blocked: Collection[str] = (),
    ) -> list[Stall]:
        """Assign resources at a record and return the stalls that end.

        Args:
            gained: resource → its new owner.
            at: time of the record.
            position: position of the record.
            firsts: the first commits of the resources after the record.
            limit: time by which a member must have had its resources.
            number: the generation or epoch.
            started: time by which a member had started its resources, according to its own log.
            new: the owners that have only just joined.
            blocked: the owners that have been silent for long.
        """
        proof: dict[str, int] = dict(started or {})
        for resource, point in firsts.items():
            proof[gained[resource]] = min(point.at, proof.get(gained[resource], point.at))
        owners = {owner: CurrentOwner(owner=owner, position=position, at=at) for owner in gained.values()}
        closed = []
        for resource, owner in gained.items():
            self.current[resource] = owners[owner]
            stall = self.open.pop(resource, None)
            if stall is None:
                continue
            self.closed[resource] = stall
            closed.append(stall)
            key: Key = (owner, resource) if self.is_streams or owner in blocked else owner
            if stall.rate and (key != owner or owner in new or key in self.arrivals.tenures):
                tenure = Tenure(resource=resource, position=position, ended=stall)
                self.arrivals.tenures.setdefault(key, []).append(tenure)
            stall.resumed_generation, stall.new_owner, stall.first_commit = number, owner, firsts.get(resource)
            stall.resumed_by, stall.resumed_earliest = position, at
            stall.resumed_latest = max(at, min(proof.get(owner, limit), limit))
            if started and owner in started:
                stall.resumed = stall.resumed_latest
        return closed

    def firsts(self, resources: Iterable[Resource], after: Position, before: Position) -> dict[Resource, Point]:
        """Return the first commits between two positions, by resource."""
        return {r: first for r in resources if (first := self.commits.first(r, after, before))}

    def undo_assignment(self, resource: Resource) -> None:
        """Undo an assignment that its owner did not learn of in time: the earlier stall continues."""
        current = self.current.pop(resource)
        stall = self.closed.pop(resource, None)
        if stall is not None and stall.resumed_by == current.position:
            stall.resumed_generation = stall.resumed_by = stall.new_owner = stall.first_commit = None
            stall.resumed = stall.resumed_earliest = stall.resumed_latest = None
            self.open[resource] = stall


def has_one_round(segment: CommitSegment) -> bool:
    """Return whether the commits are so close together that they show no rate."""
    return segment.last.at - segment.first.at < LATE_COMMIT_MS


def _rate(begin: Point, recent: CommitSegment, stopped_at: int) -> float | None:
    """Return the records per millisecond since a commit, or None if the owner was silent before it stopped."""
    progress, ms = recent.last.committed - begin.committed, recent.last.at - begin.at
    interval = recent.last.at - recent.before_last.at if recent.before_last is not None else 0
    is_quiet = stopped_at - recent.last.at > max(2 * interval, HEARTBEAT_MS)
    return None if is_quiet or progress <= 0 or ms <= ROUND_MS else progress / ms


def stalls(
    contexts: Sequence[GenerationContext],
    ownership: Ownership,
    borders: Collection[Position],
    copy: Callable[[Ownership, Position], State],
    *,
    is_begun: bool = False,
) -> dict[Position, State]:
    """Add every stall of these generations, in the order of the stops, and return the copies by position.

    Args:
        contexts: the generations.
        ownership: the state, which is updated.
        borders: positions of generations before which `ownership` is copied, as it was right after the previous one.
        copy: copies it; its second argument is the position of the previous generation.
        is_begun: `ownership` already is that right after the first generation.
    """
    copies = {}
    generations = [context.generation for context in contexts]
    for number, context in enumerate(contexts, 1):
        if is_begun and number == 1:
            continue
        g, following = context.generation, generations[number] if number < len(generations) else None
        if g.position in borders and g.previous is not None:
            copies[g.position] = copy(ownership, g.previous.position)
        ownership.begin(g.incarnation)
        ownership.is_streams = any(member.tasks is not None for member in g.members.values())
        if g.is_closed:
            ownership.mark_unknown(g.position)
        if ownership.arrivals.tenures:
            committed = [m for m, done in context.done.items() if done.last is not None]
            ownership.arrivals.prove(ownership.commits, g.position, committed)
            ownership.undecided |= {g.position} if ownership.arrivals.tenures else set()
        _take(ownership, g, context.stops, following, is_failover=context.log.failover is not None)
        ends = [r.record.position for r in g.replacements] + [following.position if following else END]
        if context.is_refused:
            pass  # its members got an error, so they own nothing new
        elif ownership.is_streams:
            _give_tasks(ownership, context, generations[number:])
        else:
            _give(ownership, g, ends[0], following, context.started)
        for change, stop, end in zip(g.replacements, context.stops.replaced, ends[1:], strict=True):
            _replace(ownership, g, change, stop, end)
        _forget_deleted(ownership, g)
    return copies


def _take(
    o: Ownership, g: Generation, stops: GenerationStops, following: Generation | None, *, is_failover: bool
) -> None:
    """Begin the stalls of resources that their owners gave up for this generation."""
    previous = g.previous
    if previous is None:
        return
    config_offset, position = previous.config_offset, g.position
    for resource, current in list(o.current.items()):
        if g.is_piecemeal and _goes_on(o, g, previous, resource):
            continue
        stop, departure_cause = stops.members[current.owner]
        is_back = current.owner in g.members
        if is_back and stops.unasked is not None and g.is_piecemeal and resource not in _brought(g, current.owner):
            stop = stops.unasked
        cause = StallCause.MOVED if is_back and g.is_piecemeal else departure_cause or _cause(g, resource)
        if g.is_empty:
            cause = StallCause.NO_MEMBER
        if is_failover and cause in (StallCause.MOVED, StallCause.EAGER_BARRIER):
            cause = StallCause.FAILOVER
        until = None
        if o.is_streams and is_back and g.is_piecemeal and following is not None:
            stop, until = _suspended(o, resource, stop, g, following), following.position
        stall = o.stop(resource, stop, cause, position, g.incarnation, g.number, since=previous.position, until=until)
        stall.config_offset = config_offset
    for owner in previous.final_members.keys() - g.members.keys():
        if owner in o.arrivals.tenures:
            o.arrivals.leave(owner, g.joined_at)


def _suspended(o: Ownership, resource: Resource, stop: Stop, g: Generation, following: Generation) -> Stop:
    """Return the stop of a task that its member must revoke: it commits once more when it is suspended."""
    made = o.commits.segment(resource, g.position, following.position)
    if made is None or not stop.earliest <= made.last.at <= following.joined_at:
        return stop
    return Stop.within(stop.earliest, max(stop.latest, made.last.at), made.last.at, stop.evidence)


def _goes_on(o: Ownership, g: Generation, previous: Generation, resource: Resource) -> bool:
    """Return whether the resource did not stop, because its member kept it during this generation."""
    owner, new = o.current[resource].owner, g.owners.get(resource)
    if g.mode == RebalanceMode.COOPERATIVE:
        return new == owner and owner in g.members
    if owner not in g.members:
        return _goes_on_renamed(o, g, resource, new)
    if resource not in _brought(g, owner) and resource not in _brought(previous, owner):
        o.undo_assignment(resource)
        return True
    return new == owner and resource in _brought(g, owner)


def _goes_on_renamed(o: Ownership, g: Generation, resource: Resource, new: str | None) -> bool:
    """Return whether a Connect worker rejoined with a new member id and reports that the resource kept running."""
    if new is None or resource not in _brought(g, new):
        return False
    o.current[resource] = o.current[resource]._replace(owner=new)
    return True


def _brought(g: Generation, member_id: str) -> frozenset[Resource]:
    return g.members[member_id].owned or frozenset()


def _cause(g: Generation, resource: Resource) -> StallCause:
    """Return the cause of a stop if no log line shows why the owner departed."""
    if resource in g.waiting:
        return StallCause.CONNECT_DELAY
    return StallCause.MOVED if g.is_piecemeal else StallCause.EAGER_BARRIER


def _give(
    o: Ownership, g: Generation, until: Position, following: Generation | None, started: Mapping[str, int]
) -> None:
    fresh, limit = _fresh(o, g), _limit(g, following)
    still_run = g.mode == RebalanceMode.INCREMENTAL
    back = [o.open[r] for r in fresh if r in o.open and r in _brought(g, fresh[r])] if still_run else []
    firsts, new = o.firsts(fresh, g.position, until), g.members.keys() - _known(g)
    o.give(fresh, g.synced_at, g.position, firsts, limit, g.number, started, new)
    for stall in back:
        _ran_on(stall, g)


def _give_tasks(o: Ownership, context: GenerationContext, later: Sequence[Generation]) -> None:
    """Assign the tasks of a Streams group: each resumes with its own first commit, however many generations later."""
    g = context.generation
    fresh, limit = _fresh(o, g), _limit(g, later[0] if later else None)
    firsts, ends = {}, {}
    for resource, owner in fresh.items():
        ends[resource] = next((each.position for each in later if each.owners.get(resource) != owner), END)
        first = o.commits.first(resource, g.position, ends[resource])
        if first is not None and first.at <= g.synced_at + FIRST_COMMIT_MS:
            firsts[resource] = first
    interval = max((done.interval for done in context.done.values()), default=0)
    for stall in o.give(fresh, g.synced_at, g.position, firsts, limit, g.number):
        stall.restore(interval)
        decided = stall.first_commit.position if stall.first_commit is not None else ends[stall.resource]
        awaiting = (each for each in later if each.joined_at <= g.synced_at + FIRST_COMMIT_MS)
        restoring = {each.position for each in awaiting if each.position < decided}
        o.restoring |= restoring
        o.undecided |= restoring


def _fresh(o: Ownership, g: Generation) -> dict[Resource, str]:
    return {r: owner for r, owner in g.owners.items() if r not in o.current or o.current[r].owner != owner}


def _limit(g: Generation, following: Generation | None) -> int:
    """Return the time by which the members must have their resources."""
    limit = g.synced_at + APPEND_MS
    if following is not None and following.incarnation == g.incarnation:
        limit = min(limit, max(g.synced_at, following.synced_at))
    return limit


def _known(g: Generation) -> Collection[str]:
    return g.previous.final_members.keys() if g.previous is not None else g.members.keys()


def _ran_on(stall: Stall, g: Generation) -> None:
    """Correct the stall of a resource that a Connect worker still had when it rejoined.

    If the worker was disconnected, the resource kept running; if the worker was frozen, it did not. No record shows
    which case applies.
    """
    stall.stop = stall.stop._replace(evidence=Evidence.INFERRED)
    stall.resumed_earliest = stall.stop.earliest
    stall.resumed = stall.resumed_latest = max(g.joined_at, stall.stop.estimate)


def _forget_deleted(o: Ownership, g: Generation) -> None:
    """Void the stalls of connectors and tasks that were deleted.

    Connect's leader immediately assigns every configured resource that runs nowhere. The exceptions are resources that
    this generation revoked and, during a delay, resources that were lost. Any other unassigned resource was deleted, if
    the leader had read at least as much of the configuration as when the resource ran
    (`IncrementalCooperativeAssignor.performTaskAssignment`).
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


def _replace(o: Ownership, g: Generation, change: Replacement, stop: Stop, until: Position) -> None:
    """Add the stalls of a static replacement (W3), from the old process's last work until the new process joined."""
    at = change.record.at if change.record.at is not None else g.synced_at
    position, new = change.record.position, change.member.member_id
    mine = [r for r, h in o.current.items() if h.owner == change.old]
    if change.old in o.arrivals.tenures:
        o.arrivals.prove(o.commits, position)
    for resource in mine:
        o.stop(resource, stop, StallCause.STATIC_RESTART, position, g.incarnation, g.number, since=g.position)
    if change.old in o.arrivals.tenures:
        o.arrivals.leave(change.old, at)
    firsts = o.firsts(mine, position, until)
    o.give(dict.fromkeys(mine, new), at, position, firsts, at + APPEND_MS, g.number, new={new})
