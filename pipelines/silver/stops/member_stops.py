"""The stops of all members of all generations: of members that departed, and of members that stayed.

An idle member commits nothing new, which looks like a member whose handler is blocked. The next owner's first commits
tell the two apart: if records waited, they soon make progress. If none waited, nothing was lost by the silence.
`stalls` tracks the owners of resources with these stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pipelines.silver.generation_log import GenerationLog
from pipelines.silver.generations import Generation, Member, Replacement
from pipelines.silver.history import ROUND_MS, CommitHistory, CommitSegment, Event, Position, Resource
from pipelines.silver.stops.commit_activity import LATE_COMMIT_MS, CommitActivity, work_by_member
from pipelines.silver.stops.stop import Stop
from pipelines.silver.stops.unanswered_clients import FENCED_MS, QUEUED_MS, STALL_MS, Clients, returned, returned_stop
from pipelines.silver.workers import WorkerLog
from schemas.client_libraries import FACTS
from schemas.coordinator_log import EventKind
from schemas.states import Evidence, RebalanceMode, StallCause, Trigger

HEARTBEAT_MS = 3_000
"""Default of heartbeat.interval.ms in Java and librdkafka. It should not exceed a third of the session timeout."""

APPEND_MS = 5_000
"""Value of offsets.commit.timeout.ms. A rebalance fails if its assignment is not stored and sent within this time."""

POLL_TIMEOUT_TEXT = "poll timeout has expired"

EXPULSIONS = (EventKind.SESSION_EXPIRED, EventKind.REMOVED_NOT_REJOINED, EventKind.REMOVED_NOT_SYNCED)
"""Log lines about members that the coordinator removed, in contrast to members that left."""

SOON_MS = 10_000
"""Milliseconds after an assignment within which a consumer with work commits: twice the default auto.commit.interval.ms
of Java, librdkafka and franz-go."""

END: Position = (1 << 31, 1 << 62)
"""A position after all records."""


class MemberDeparture(NamedTuple):
    """The departure of a member of the previous generation; `line` is None if no log line describes it."""

    member: Member
    line: Event | None

    @property
    def is_poll_timeout(self) -> bool:
        return self.line is not None and POLL_TIMEOUT_TEXT in (self.line["client_reason"] or "")

    def was_poll_timeout(self, done: CommitActivity) -> bool:
        """Return whether the member left after a poll timeout.

        Either the line contains the reason, or it contains none, the member was silent for its whole poll interval
        before it left, and records may have waited meanwhile. librdkafka never gives a reason. Members of libraries
        without a poll timeout do not leave because of one. aiokafka's commit in the background, and no record contains
        their poll interval: their last commits made no progress while records waited.
        """
        if self.is_poll_timeout:
            return True
        if self.line is None or self.line.kind != EventKind.LEFT or self.line["client_reason"] or done.last is None:
            return False
        facts = FACTS.get(self.member.library.library)
        if facts is not None and facts.commits_while_blocked:
            return self.was_blocked(done)
        if done.backlog is False or (facts is not None and facts.watchdog != "leave"):
            return False
        silent = self.line.until - (done.stopped or done.last)
        return silent >= self.member.rebalance_timeout_ms - HEARTBEAT_MS // 2 and silent > HEARTBEAT_MS

    def was_blocked(self, done: CommitActivity) -> bool:
        """Return whether the last commits show a blocked handler, of a library that commits in the background."""
        facts = FACTS.get(self.member.library.library)
        return facts is not None and facts.commits_while_blocked and done.is_blocked


def departure(member: Member, log: GenerationLog) -> MemberDeparture:
    return MemberDeparture(member=member, line=log.departed.get(member.member_id))


class MemberStop(NamedTuple):
    """The stop of a member of the previous generation, and the cause if the departure shows one."""

    stop: Stop
    cause: StallCause | None = None


class GenerationStops(NamedTuple):
    """The stops of the members of the previous generation, by their final ids.

    `unasked` is the stop of resources that a staying Connect worker gave up unasked, or None if no worker can have done
    so. `replaced` are the stops of replaced static members, in the order of `Generation.replacements`.
    """

    members: Mapping[str, MemberStop]
    unasked: Stop | None
    replaced: Sequence[Stop]


class _Rebalance(NamedTuple):
    """The facts that all stops for one generation depend on.

    `join_ms` is the expected duration of the join phase, if no line shows its start.
    """

    g: Generation
    log: GenerationLog
    workers: WorkerLog
    clients: Clients
    join_ms: int


class GenerationContext(NamedTuple):
    """A generation, its log lines, and facts about its members by member id.

    `done` has the commits of the previous generation's members in that generation. `started` has the time by which a
    Connect worker had started its resources of this generation, according to its own log. `is_refused`: the coordinator
    could not store the assignment in time and sent an error instead, although its record was written later.
    """

    generation: Generation
    log: GenerationLog
    done: dict[str, CommitActivity]
    stops: GenerationStops
    started: Mapping[str, int]
    is_refused: bool = False


def generation_contexts(
    generations: Sequence[Generation], logs: Iterable[GenerationLog], commits: CommitHistory, workers: WorkerLog
) -> list[GenerationContext]:
    """Return the context of each generation; `logs` are their log lines, in the same order."""
    contexts, known_logs = [], list(logs)
    later = zip([*generations[1:], None], [*known_logs[1:], None], strict=False)
    for g, log, (following, next_log) in zip(generations, known_logs, later, strict=False):
        done = {} if g.previous is None else _activity(g, g.previous, following, commits)
        started = {m: workers.logged_at(m, g, EventKind.WORKER_STARTED) for m in g.members}
        stops = GenerationStops(
            members=_member_stops(g, log, done, following, workers),
            unasked=_unasked(g),
            replaced=[_replaced(g, change, commits) for change in g.replacements],
        )
        known = {member_id: at for member_id, at in started.items() if at is not None}
        contexts.append(GenerationContext(g, log, done, stops, known, _is_refused(next_log)))
    return contexts


def _is_refused(following: GenerationLog | None) -> bool:
    """Return whether the lines of the next generation say that this one's assignment could not be stored."""
    start = None if following is None else following.preparing
    return start is not None and start["trigger"] == Trigger.ASSIGNMENT_FAILED


def _activity(
    g: Generation, previous: Generation, following: Generation | None, commits: CommitHistory
) -> dict[str, CommitActivity]:
    """Return the commits of the previous generation's members, with `backlog` and `is_blocked` for departed members."""
    done = work_by_member(previous, commits, g.position)
    newest = max((a.repeated_at or a.last or 0 for m, a in done.items() if m in g.members), default=None)
    # A task of Kafka Streams commits when its state is restored, which may take long.
    is_prompt = not any(member.tasks is not None for member in g.members.values())
    has_time = is_prompt and (following is None or following.joined_at - g.synced_at > SOON_MS)
    for m in done.keys() - g.members.keys():
        resumed = list(_resumed(previous.final_members[m].assigned, g, previous, following, commits))
        last, waited = done[m].last, any(waited for _, waited in resumed)
        # If the others went silent as well, the whole group had nothing to read.
        is_quiet = newest is not None and last is not None and newest <= last + _usual_silence(done[m])
        backlog = True if waited else False if has_time or is_quiet else None
        done[m] = done[m]._replace(backlog=backlog, is_blocked=_was_blocked(resumed))
    return done


def _resumed(
    resources: Iterable[Resource],
    g: Generation,
    previous: Generation,
    following: Generation | None,
    commits: CommitHistory,
) -> Iterator[tuple[CommitSegment, bool]]:
    """Yield the commits in `previous` of each resource that a departed member had, and whether records waited.

    Records waited if the next owner soon committed progress, before the generation after `g`. Its first commit may
    repeat the offset that it was given, so the last ones count as well. As long as more commits may follow, only the
    first is certain to be known later. Resources without commits are omitted.
    """
    end = END if following is None else following.position
    for resource in resources:
        before = commits.segment(resource, previous.position, g.position)
        after = commits.segment(resource, g.position, end)
        if before is None:
            continue
        known = () if after is None else after[:1] if following is None else after
        soon = [point.committed for point in known if point is not None and point.at - g.synced_at <= SOON_MS]
        yield before, any(committed > before.last.committed for committed in soon)


def _was_blocked(resumed: Sequence[tuple[CommitSegment, bool]]) -> bool:
    """Return whether the last three commits of each resource made no progress although records waited for each."""
    return bool(resumed) and all(
        waited and before.third_last is not None and before.third_last.committed == before.last.committed
        for before, waited in resumed
    )


def _member_stops(
    g: Generation,
    log: GenerationLog,
    done: Mapping[str, CommitActivity],
    following: Generation | None,
    workers: WorkerLog,
) -> dict[str, MemberStop]:
    previous = g.previous
    if previous is None:
        return {}
    members = {}
    rebalance = _Rebalance(g, log, workers, Clients(previous, g), _join_ms(g, previous))
    for member_id, member in previous.final_members.items():
        if member_id not in g.members:
            members[member_id] = _absent(departure(member, log), done[member_id], rebalance)
        elif g.is_piecemeal:
            members[member_id] = MemberStop(_revoked(member_id, g, following, workers))
        else:
            members[member_id] = MemberStop(_stayed(member_id, done[member_id], rebalance))
    return members


def _unasked(g: Generation) -> Stop | None:
    """Return the stop of resources that a worker gave up unasked: it lost its coordinator and rejoined without them."""
    if g.previous is None or g.mode != RebalanceMode.INCREMENTAL:
        return None
    return Stop.within(g.previous.synced_at, g.joined_at, g.joined_at, Evidence.INFERRED)


def _absent(gone: MemberDeparture, done: CommitActivity, of: _Rebalance) -> MemberStop:
    """Return the stop of a member that is not in this generation."""
    g, log, workers = of.g, of.log, of.workers
    assert g.previous is not None
    began = workers.logged_at(gone.member.member_id, g.previous, EventKind.WORKER_STOPPING)
    stop = _departed(gone, done, of) if began is None else _halted(began, gone, g)
    if began is None:
        asked = returned(gone.member, gone.line, of.clients, log)
        if asked is not None and gone.line is not None:
            stop = returned_stop(stop, gone.member, done, asked, gone.line, log.loaded)
        elif log.loaded is not None:
            stop = _failed_over(stop, gone, done, log.loaded.at, g)
    kind = gone.line.kind if gone.line is not None else None
    if kind in EXPULSIONS or gone.was_poll_timeout(done):
        return MemberStop(stop, StallCause.MEMBER_LOST)
    return MemberStop(stop, StallCause.STATIC_RESTART if kind == EventKind.STATIC_REPLACED else None)


def _revoked(member_id: str, g: Generation, following: Generation | None, workers: WorkerLog) -> Stop:
    """Return the stop of a resource that a member must revoke.

    The member learns of the revocation with its assignment, and rejoins after it.
    """
    logged_at = workers.logged_at(member_id, g, EventKind.WORKER_STOPPED)
    if logged_at is not None:
        return Stop.within(g.synced_at, logged_at, (g.synced_at + logged_at) // 2, Evidence.OBSERVED)
    latest = g.synced_at + APPEND_MS
    if following is not None and member_id in following.members:
        latest = min(latest, following.joined_at)
    return Stop.within(g.synced_at, latest, g.synced_at, Evidence.OBSERVED)


def _stayed(member_id: str, done: CommitActivity, of: _Rebalance) -> Stop:
    """Return the stop of an eager member that rejoined.

    It gave up everything after it learned of the rebalance and before it rejoined.
    """
    g, start = of.g, of.log.first_preparing
    if start is None and done.last is not None and g.joined_at - done.last > _usual_silence(done):
        # An idle member stopped when it noticed the rebalance, on average in the middle of the join phase.
        return Stop.within(done.working_at, g.joined_at, g.joined_at - of.join_ms // 2, Evidence.INFERRED)
    if start is None:
        estimate = (done.working_at + g.joined_at) // 2 if done.stopped is None else done.stopped
        return Stop.within(done.working_at, g.joined_at, estimate, _grade(done))
    if member_id == start["member_id"]:
        # The member gave up its resources before it asked to rejoin.
        estimate = start.at if done.stopped is None else min(done.stopped, start.until)
        return Stop.within(done.working_at, start.until, estimate, _grade(done))
    if done.last is None or done.last < start.at:
        earliest = max(start.at, done.last or done.since)
        return Stop.within(earliest, g.joined_at, (earliest + g.joined_at) // 2, Evidence.INFERRED)
    return Stop.within(max(start.at, done.working_at), g.joined_at, done.stopped or done.last, _grade(done))


def _replaced(g: Generation, change: Replacement, commits: CommitHistory) -> Stop:
    """Return the stop of a replaced static member. It stopped after its last work, with or without a clean shutdown."""
    at = change.record.at if change.record.at is not None else g.synced_at
    done = work_by_member(g, commits, change.record.position, change.old)[change.old]
    if done.last is None:
        return Stop.within(done.since, at, (done.since + at) // 2, Evidence.INFERRED)
    return Stop.within(done.working_at, at, done.stopped or done.last, _grade(done))


def _departed(gone: MemberDeparture, done: CommitActivity, of: _Rebalance) -> Stop:
    """Return the stop of a member that is not in the next generation: it left, was removed or died."""
    g, line, last = of.g, gone.line, done.last
    if gone.was_poll_timeout(done):
        assert line is not None
        limit = line.until - gone.member.rebalance_timeout_ms if gone.is_poll_timeout else line.until
        guess = line.at if done.is_blocked else line.at - gone.member.rebalance_timeout_ms
        guess = guess if done.stopped is None else min(guess, done.stopped)
        return Stop.within(done.working_at, limit, guess, Evidence.INFERRED)
    if line is not None and line.kind == EventKind.SESSION_EXPIRED:
        return _expired(gone.member, line, done)
    until = g.joined_at if line is None else line.until
    earliest = _working_at(gone, done, g, until)
    if last is None:
        return Stop.within(earliest, until, until, Evidence.INFERRED)
    if _was_idle(gone, done, until - last):
        facts = FACTS.get(gone.member.library.library)
        closing = facts.close_ms if facts is not None else 0
        estimate = line.at - closing if line is not None else g.joined_at - of.join_ms
        return Stop.within(done.working_at, until, estimate, Evidence.INFERRED)
    if line is None and until - last >= gone.member.session_timeout_ms:
        return Stop.within(done.working_at, until, last + done.interval // 2, Evidence.INFERRED)
    stopped, evidence = done.stopped or last, _grade(done)
    if line is not None and _worked_on(line, done, last):
        stopped, evidence = line.at, Evidence.INFERRED
    return Stop.within(earliest, until, stopped, evidence)


def _worked_on(line: Event, done: CommitActivity, last: int) -> bool:
    """Return whether a member that left had not committed on close, and its next commit was not due yet.

    A commit on close comes right before the LeaveGroup. Without one, nothing shows that the member stopped earlier.
    """
    return line.kind == EventKind.LEFT and LATE_COMMIT_MS < line.at - last <= done.interval * 11 // 10


def _working_at(gone: MemberDeparture, done: CommitActivity, g: Generation, until: int) -> int:
    """Return a time at which a departed member certainly worked.

    A consumer that is closed while it joins leaves when it has joined. So a cooperative member that leaves right after
    a rebalance may have stopped what it kept at any time of the join phase. Without a line, it may have left up to a
    heartbeat before `until`, because the others notice it with their next one.
    """
    previous = g.previous
    is_kept = previous is not None and previous.mode == RebalanceMode.COOPERATIVE and bool(gone.member.owned)
    soon = HEARTBEAT_MS if gone.line is not None else 2 * HEARTBEAT_MS
    if previous is None or not is_kept or done.working_at != done.since or until - done.since > soon:
        return done.working_at
    return min(done.since, previous.joined_at - gone.member.rebalance_timeout_ms)


def _was_idle(gone: MemberDeparture, done: CommitActivity, silent: int) -> bool:
    """Return whether a member was silent for `silent` milliseconds because it had nothing to commit, not stopped.

    A member that left was closed in order, so its last commit is as old as its last record. Without a line, it may also
    have died, unless no records waited for its next owner.
    """
    if silent <= _usual_silence(done) or done.backlog:
        return False
    if gone.line is None:
        return done.backlog is False
    return gone.line.kind == EventKind.LEFT


def _expired(member: Member, line: Event, done: CommitActivity) -> Stop:
    """Return the stop of a member whose session expired.

    The session began at the last heartbeat or commit, so that time is known. The member died before the next one.
    """
    alive = line.at - member.session_timeout_ms
    silence = max(HEARTBEAT_MS, member.session_timeout_ms // 3)
    if done.last is None:
        return Stop.within(max(alive, done.since), line.until, alive + silence // 2, Evidence.INFERRED)
    earliest = max(alive - ROUND_MS, done.working_at)
    guess = max(alive, done.last + done.interval // 2)
    return Stop.within(
        earliest, min(line.until, line.until - member.session_timeout_ms + silence), guess, Evidence.INFERRED
    )


def _failed_over(stop: Stop, gone: MemberDeparture, done: CommitActivity, loaded_at: int, g: Generation) -> Stop:
    """Return the stop of a member that departed while the group moved to a coordinator that loaded it at `loaded_at`.

    The new coordinator begins all sessions anew, so the end of a session does not show that the member was alive
    before, or that it was not for some time after. A member that the new coordinator does not know stops as soon as it
    hears so, and its last commit may have been retried and written later. So only a commit before the load is certainly
    before the stop.
    """
    session_ms = gone.member.session_timeout_ms
    until = g.joined_at if gone.line is None else gone.line.until
    if loaded_at + session_ms + ROUND_MS < until - max(HEARTBEAT_MS, session_ms // 3):
        return stop  # its session did not begin with the load
    in_time = [at for at in done.known if at < loaded_at - QUEUED_MS]
    is_last = done.last in in_time
    earliest = max([done.since if is_last else max(done.since, loaded_at - session_ms - STALL_MS), *in_time])
    estimate = stop.estimate
    if done.last is not None and done.last >= loaded_at and done.stopped is not None:
        estimate = min(estimate, done.stopped if done.has_late_commit else loaded_at)
    elif done.last is not None and is_last and session_ms <= FENCED_MS:
        # The data stopped with the broker, and the session ended before another broker replaced it.
        estimate = done.last + done.interval // 2
    latest = until if gone.line is not None and gone.line.kind in EXPULSIONS else stop.latest
    return Stop.within(min(earliest, stop.earliest), latest, estimate, Evidence.INFERRED)


def _halted(began: int, gone: MemberDeparture, g: Generation) -> Stop:
    """Return the stop of a Connect worker that logged the begin of its shutdown and left after it."""
    until = g.joined_at if gone.line is None else gone.line.until
    return Stop.within(min(began, until), until, began, Evidence.OBSERVED)


def _join_ms(g: Generation, previous: Generation) -> int:
    """Return the expected milliseconds of a join phase whose start no line shows: until the last of the members that
    stay notices it with its heartbeat.
    """
    staying = len(g.members.keys() & previous.final_members.keys())
    return HEARTBEAT_MS * staying // (staying + 1)


def _grade(done: CommitActivity) -> Evidence:
    return Evidence.BOUNDED if done.stopped is not None and done.stopped == done.last else Evidence.INFERRED


def _usual_silence(done: CommitActivity) -> int:
    """Return the milliseconds without a commit that are usual while a member works."""
    return max(2 * done.interval, HEARTBEAT_MS)
