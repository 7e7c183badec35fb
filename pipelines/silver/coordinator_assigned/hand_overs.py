"""Stalls of groups whose coordinator assigns: from a revocation, departure or static absence to the next owner.

The records themselves are the bounds. A revoked resource stops between the record that requests the revocation and the
record without the resource. An assigned resource starts with the record that assigns it
(`CurrentAssignmentBuilder.java`).
"""

from __future__ import annotations

from typing import NamedTuple

from pipelines.silver.carrying.ownership import copied
from pipelines.silver.coordinator_assigned.carried_epochs import copied_before
from pipelines.silver.coordinator_assigned.epochs import Assigned, Begun, Emptied, LossKind, Move, Revoked
from pipelines.silver.coordinator_assigned.exits import Exit, MemberLines, exit_of
from pipelines.silver.coordinator_assigned.state_points import StatePoint
from pipelines.silver.history import Point, Position, Resource
from pipelines.silver.stalls import FIRST_COMMIT_MS, Ownership, has_one_round
from pipelines.silver.stops.commit_activity import CommitActivity, work_of
from pipelines.silver.stops.member_stops import APPEND_MS, HEARTBEAT_MS
from pipelines.silver.stops.stall import Stall
from pipelines.silver.stops.stop import Stop
from schemas.states import Evidence, StallCause, Trigger

AT_ONCE_MS = 50
"""Maximum milliseconds between a commit on close and the request that leaves the group."""

Exits = dict[tuple[Position, str], Exit]


def hand_overs(
    moves: list[Move], points: list[StatePoint], ownership: Ownership, lines: MemberLines, end: Position
) -> Exits:
    """Add the stalls of one phase, which ends before `end`, and return the reason for each departure.

    It also stores the current owners in each of the points.
    """
    exits: Exits = {}
    ends = _ends(moves, end)
    _await_commits(ownership, ends.following, end)
    later = iter(points)
    point = next(later, None)
    for move, until in zip(moves, ends.of_moves, strict=True):
        while point is not None and point.position <= move.record.position:
            _store_owners(point, ownership)
            point = next(later, None)
        match move:
            case Begun():
                ownership.begin(move.incarnation)
            case Emptied():
                for stall in ownership.open.values():
                    stall.cause = StallCause.NO_MEMBER
            case Assigned():
                _give(ownership, move, until)
            case Revoked():
                found = _take(ownership, move, lines)
                if found is not None:
                    exits[move.record.position, move.member.member_id] = found
    for each in filter(None, (point, *later)):
        _store_owners(each, ownership)
    return exits


def _await_commits(o: Ownership, following: dict[Resource, Position], end: Position) -> None:
    """Add the first commits of stalls that ended before the history resumed."""
    for stall in o.resumed:
        assert stall.resumed_by is not None
        assert stall.resumed_earliest is not None
        first = o.commits.first(stall.resource, stall.resumed_by, following.get(stall.resource, end))
        if first is not None and first.at <= stall.resumed_earliest + FIRST_COMMIT_MS:
            stall.first_commit = first


def _store_owners(point: StatePoint, ownership: Ownership) -> None:
    """Store the owners in a point.

    A group is not at rest if a stall is open, may still get its first commit, or may still turn out to be open.
    """
    ownership.arrivals.prove(ownership.commits, point.position)
    ownership.resumed = [stall for stall in ownership.resumed if _may_await(stall, ownership, point)]
    is_open = ownership.open or ownership.resumed or ownership.arrivals.tenures
    if point.is_at_rest and not (
        is_open or any(_has_one_commit(ownership, resource, point) for resource in ownership.current)
    ):
        point.current = dict(ownership.current)
        # A rebuild that resumes here does not know them.
        ownership.closed.clear()
    # A later commit of a Streams task may show when it was restored.
    if point.is_border and not (ownership.is_streams and ownership.resumed):
        point.copied = copied_before(copied(ownership, point.position), point.position)


def _has_one_commit(o: Ownership, resource: Resource, point: StatePoint) -> bool:
    """Return whether the rate of a resource depends on what was before its last stall (`Ownership.stop`)."""
    if resource not in o.closed:
        return False
    segment = o.commits.segment(resource, o.current[resource].position, point.position)
    return segment is not None and has_one_round(segment)


def _may_await(stall: Stall, o: Ownership, point: StatePoint) -> bool:
    """Return whether a stall may still get its first commit: its owner still has the resource, the time limit is not
    over, and no commit came before the point.
    """
    first, since = stall.first_commit, stall.resumed_earliest
    current = o.current.get(stall.resource)
    if stall.is_void or current is None or current.position != stall.resumed_by:
        return False
    is_over = since is None or since + FIRST_COMMIT_MS < point.next_at
    return not is_over and (first is None or first.position >= point.position)


class Ends(NamedTuple):
    """Where the commits of an owner end.

    `of_moves` has one dict per move: for `Assigned`, the position of each resource's next revocation or assignment.
    `following` has the position of each resource's first one.
    """

    of_moves: list[dict[Resource, Position]]
    following: dict[Resource, Position]


def _ends(moves: list[Move], end: Position) -> Ends:
    following: dict[Resource, Position] = {}
    out: list[dict[Resource, Position]] = []
    for move in reversed(moves):
        out.append({r: following.get(r, end) for r in move.resources} if isinstance(move, Assigned) else {})
        if isinstance(move, Assigned | Revoked):
            following.update(dict.fromkeys(move.resources, move.record.position))
    return Ends(out[::-1], following)


def _give(o: Ownership, move: Assigned, ends: dict[Resource, Position]) -> None:
    at = move.record.at or 0
    o.begin(move.incarnation)
    gained: dict[Resource, str] = {}
    firsts: dict[Resource, Point] = {}
    mine = [r for r, current in o.current.items() if current.owner == move.member_id] if _is_busy(o, move) else []
    new = [] if mine else [move.member_id]
    blocked = [move.member_id] if mine and _is_silent(_work(o, mine, move.record.position, at), at) else []
    for resource in sorted(move.resources):
        current = o.current.get(resource)
        if current is not None and current.owner == move.member_id:
            continue
        if current is not None:
            done = _work(o, [resource], move.record.position, at)
            stop = Stop.within(done.working_at, at, at, Evidence.INFERRED)
            o.stop(resource, stop, StallCause.MOVED, move.record.position, move.incarnation, move.number)
        gained[resource] = move.member_id
        first = o.commits.first(resource, move.record.position, ends[resource])
        if first is not None and first.at <= at + FIRST_COMMIT_MS:
            firsts[resource] = first
    interval = _interval(o, move) if o.is_streams else 0
    closed = o.give(gained, at, move.record.position, firsts, at + APPEND_MS, move.number, new=new, blocked=blocked)
    for stall in closed if o.is_streams else ():
        stall.restore(interval)
    o.resumed += closed


def _is_busy(o: Ownership, move: Assigned) -> bool:
    """Return whether records came for one of the resources when it stopped."""
    return any(r in o.open and o.open[r].rate for r in move.resources)


def _is_silent(done: CommitActivity, at: int) -> bool:
    """Return whether a member has not committed for longer than it usually does."""
    return done.last is not None and at - done.last > max(2 * done.interval, HEARTBEAT_MS)


def _prove(o: Ownership, owner: str, before: Position, *, has_committed: bool) -> None:
    """Forget the assignments of members that committed before a position.

    A blocked member that commits for any of its resources goes on working.
    """
    o.arrivals.prove(o.commits, before, [owner] if has_committed else [])
    mine = [r for r, current in o.current.items() if current.owner == owner]
    for key, tenures in list(o.arrivals.tenures.items()):
        if not o.is_streams and key in {(owner, r) for r in mine} and o.firsts(mine, tenures[0].position, before):
            del o.arrivals.tenures[key]


def _interval(o: Ownership, move: Assigned) -> int:
    """Return the interval in milliseconds in which members of a Streams group commit, or 0."""
    mine: dict[str, list[Resource]] = {}
    for resource, current in o.current.items():
        mine.setdefault(current.owner, []).append(resource)
    return max((_work(o, owned, move.record.position, 0).interval for owned in mine.values()), default=0)


def _take(o: Ownership, move: Revoked, lines: MemberLines) -> Exit | None:
    at = move.record.at or 0
    owner = move.member.member_id
    mine = [r for r in sorted(move.resources) if r in o.current and o.current[r].owner == owner]
    before = move.until.position if move.until is not None and move.kind == LossKind.REVOKED else move.record.position
    done = _work(o, mine, before, at)
    gone = None
    if move.kind == LossKind.GONE:
        gone = exit_of(move.member, at, done, lines.departure(owner, at))
        if move.member.group_instance_id is not None:
            _relabel(o, owner, gone)
    stop, cause = _stop(move, done, gone)
    if o.arrivals.tenures:
        _prove(o, owner, before, has_committed=done.last is not None)
    for resource in mine:
        o.stop(resource, stop, cause, move.record.position, move.incarnation, move.number, until=before)
    if move.kind in (LossKind.GONE, LossKind.REPLACED, LossKind.PAUSED):
        o.arrivals.leave(owner, at)
    return gone


def _work(o: Ownership, mine: list[Resource], before: Position, at: int) -> CommitActivity:
    current = [(r, o.current[r]) for r in mine]
    segments = [s for r, h in current if (s := o.commits.segment(r, h.position, before))]
    return work_of(segments, max((h.at for _, h in current), default=at))


def _relabel(o: Ownership, owner: str, gone: Exit) -> None:
    """Change the cause of the stalls of an absent static member that did not return in time."""
    if gone.trigger == Trigger.MEMBER_LEFT:
        return
    for stall in o.open.values():
        if stall.owner == owner and stall.cause == StallCause.STATIC_RESTART:
            stall.cause = StallCause.MEMBER_LOST


def _stop(move: Revoked, done: CommitActivity, gone: Exit | None) -> tuple[Stop, StallCause]:
    at = move.record.at or 0
    match move.kind:
        case LossKind.REVOKED:
            return _revoked(move, done, at)
        case LossKind.REPLACED:
            last = done.stopped if done.last is not None else (done.since + at) // 2
            return Stop.within(done.working_at, at, last or at, Evidence.INFERRED), StallCause.STATIC_RESTART
        case LossKind.PAUSED:
            return _stop_before_request(done, at), StallCause.STATIC_RESTART
        case LossKind.REJOINED:
            return _stop_before_request(done, at), StallCause.EAGER_BARRIER
    if gone is not None and gone.trigger == Trigger.MEMBER_LEFT:
        return _stop_before_request(done, at), StallCause.MOVED
    guess = at if done.last is None else min(at, done.last + done.interval // 2)
    is_lost = gone is not None and gone.is_lost
    return (
        Stop.within(done.working_at, at, guess, Evidence.INFERRED),
        StallCause.MEMBER_LOST if is_lost else StallCause.MOVED,
    )


def _revoked(move: Revoked, done: CommitActivity, at: int) -> tuple[Stop, StallCause]:
    if move.is_expelled:
        # The member never responded. It may have been stuck since before the request.
        until = move.until.at if move.until is not None and move.until.at is not None else at
        guess = done.stopped if done.last is not None else at
        return Stop.within(min(done.working_at, at), until, guess or at, Evidence.INFERRED), StallCause.MEMBER_LOST
    if move.until is None or move.until.at is None:
        longest = move.member.rebalance_timeout_ms or 0
        return Stop.within(at, at + longest, at, Evidence.BOUNDED), StallCause.MOVED
    # A client with automatic commits commits on revocation after it stopped. Some commit during their callbacks.
    guess = done.last if done.last is not None and done.last >= at and not done.has_late_commit else done.stopped or at
    return Stop.within(at, move.until.at, guess, Evidence.OBSERVED), StallCause.MOVED


def _stop_before_request(done: CommitActivity, at: int) -> Stop:
    """Return the stop of a client that left or rejoined.

    Such a client stops, commits if it commits automatically, and sends its request immediately.
    """
    guess = at
    if done.stopped is not None and (done.has_late_commit or at - done.stopped <= AT_ONCE_MS):
        guess = done.stopped
    return Stop.within(done.working_at, at, guess, Evidence.BOUNDED)
