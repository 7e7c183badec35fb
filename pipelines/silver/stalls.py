"""Stop-the-world windows of classic groups: from the moment a resource's owner stopped until somebody had it again."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.silver.generations import Generation, Replacement
from pipelines.silver.history import Commits, Point, Position, Resource
from pipelines.silver.lines import Story
from pipelines.silver.stops import Departure, Stop, Work, departed, departure, replaced, stayed, work_by_member
from schemas.coordinator_log import EventKind
from schemas.states import Evidence, RebalanceMode, StallCause

END: Position = (1 << 31, 1 << 62)

APPEND_MS = 5_000
"""offsets.commit.timeout.ms: an assignment that is not stored and handed out within it fails the rebalance."""


@dataclass(slots=True, kw_only=True)
class Stall:
    """One window. `resumed_*` are None while nobody has the resource."""

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
    first_commit: Point | None = None

    @property
    def is_lost(self) -> bool:
        """Counts as lost; otherwise as idle, or not at all while it lasts."""
        return self.resumed_earliest is not None and self.cause != StallCause.NO_MEMBER

    @property
    def milliseconds(self) -> tuple[int, int, int] | None:
        """Lower bound, estimate, upper bound; None while nobody has it."""
        if self.resumed_earliest is None or self.resumed_latest is None:
            return None
        return (
            max(0, self.resumed_earliest - self.stop.latest),
            max(0, self.resumed_earliest - self.stop.estimate),
            max(0, self.resumed_latest - self.stop.earliest),
        )


@dataclass(slots=True, kw_only=True)
class _Held:
    """Who has a resource, since which record and when."""

    owner: str
    position: Position
    at: int


class _Ownership:
    def __init__(self, commits: Commits) -> None:
        self.commits = commits
        self.held: dict[Resource, _Held] = {}
        self.open: dict[Resource, Stall] = {}
        self.stalls: list[Stall] = []

    def stop(
        self, resource: Resource, stop: Stop, cause: StallCause, by: Position, incarnation: int, number: int
    ) -> None:
        held = self.held.pop(resource)
        segment = self.commits.segment(resource, held.position, by)
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

    def give(
        self, got: dict[Resource, str], at: int, position: Position, until: Position, limit: int, number: int
    ) -> None:
        """Resources that `position` handed out; `until` is the next group record and `limit` a time by which a member
        must have had them.
        """
        firsts = {r: s.first for r in got if (s := self.commits.segment(r, position, until))}
        proof: dict[str, int] = {}
        for resource, point in firsts.items():
            proof[got[resource]] = min(point.at, proof.get(got[resource], point.at))
        for resource, owner in got.items():
            self.held[resource] = _Held(owner=owner, position=position, at=at)
            stall = self.open.pop(resource, None)
            if stall is None:
                continue
            stall.resumed_generation, stall.new_owner, stall.first_commit = number, owner, firsts.get(resource)
            stall.resumed_by, stall.resumed_earliest = position, at
            stall.resumed_latest = max(at, min(proof.get(owner, limit), limit))


def stalls(told: list[tuple[Generation, Story]], commits: Commits) -> list[Stall]:
    """Every window of one group, in the order in which the resources stopped."""
    ownership = _Ownership(commits)
    incarnation = None
    for index, (g, story) in enumerate(told):
        following = told[index + 1][0] if index + 1 < len(told) else None
        if g.incarnation != incarnation:
            ownership.held, ownership.open, incarnation = {}, {}, g.incarnation
        _take(ownership, g, story, following)
        ends = [r.record.position for r in g.replacements] + [following.position if following else END]
        _give(ownership, g, ends[0], following)
        for change, end in zip(g.replacements, ends[1:], strict=True):
            _replace(ownership, g, change, end)
    return ownership.stalls


def _take(o: _Ownership, g: Generation, story: Story, following: Generation | None) -> None:
    """Close what its owner gave up for this generation."""
    previous = g.previous
    if previous is None:
        return
    members = previous.final_members
    owned = g.owners
    done = work_by_member(previous, o.commits, g.position)
    stops: dict[str, Stop] = {}
    for resource, held in list(o.held.items()):
        owner = held.owner
        back = owner in g.members
        keeps = g.mode == RebalanceMode.COOPERATIVE and back
        if keeps and owned.get(resource) == owner:
            continue
        if keeps:
            o.stop(resource, _revoked(owner, g, following), StallCause.MOVED, g.position, g.incarnation, g.number)
            continue
        gone = departure(members[owner], story)
        if owner not in stops:
            stops[owner] = stayed(owner, done[owner], story, g) if back else departed(gone, done[owner], g)
        cause = _cause(g, back=back, gone=gone, done=done[owner])
        o.stop(resource, stops[owner], cause, g.position, g.incarnation, g.number)


def _revoked(owner: str, g: Generation, following: Generation | None) -> Stop:
    """A cooperative member learns with its assignment what it has to give up, and rejoins when it has."""
    latest = g.synced_at + APPEND_MS
    if following is not None and owner in following.members:
        latest = min(latest, following.joined_at)
    return Stop.within(g.synced_at, latest, g.synced_at, Evidence.OBSERVED)


def _cause(g: Generation, *, back: bool, gone: Departure, done: Work) -> StallCause:
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
    return StallCause.MOVED if g.mode == RebalanceMode.COOPERATIVE else StallCause.EAGER_BARRIER


def _give(o: _Ownership, g: Generation, until: Position, following: Generation | None) -> None:
    fresh = {r: owner for r, owner in g.owners.items() if r not in o.held or o.held[r].owner != owner}
    limit = g.synced_at + APPEND_MS
    if following is not None and following.incarnation == g.incarnation:
        limit = min(limit, max(g.synced_at, following.synced_at))
    o.give(fresh, g.synced_at, g.position, until, limit, g.number)


def _replace(o: _Ownership, g: Generation, change: Replacement, until: Position) -> None:
    """W3: the instance's resources stood still from its last work until the new process came."""
    at = change.record.at if change.record.at is not None else g.synced_at
    mine = [r for r, h in o.held.items() if h.owner == change.old]
    stop = replaced(work_by_member(g, o.commits, change.record.position)[change.old], at)
    for resource in mine:
        o.stop(resource, stop, StallCause.STATIC_RESTART, change.record.position, g.incarnation, g.number)
    o.give(dict.fromkeys(mine, change.member.member_id), at, change.record.position, until, at + APPEND_MS, g.number)
