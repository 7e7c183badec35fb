"""Stops of clients that got no reply from their coordinator, although their process went on.

After a session timeout without a reply, librdkafka gives up its resources and asks for a new member id as soon as a
coordinator replies. The group then waits until the session of the old id ends. The reason is a broker that died or
hangs: as coordinator, or as a follower without which nothing is committed (`CoordinatorRuntime` replies to a heartbeat
when all earlier writes are committed). A process that was killed and started again has the same records and lines, but
its coordinator heard it until its end.

What the client processed last is older still: while a replica in sync is dead, consumers get no new records of its
partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipelines.silver.generation_log import GenerationLog
from pipelines.silver.generations import Generation, Member
from pipelines.silver.history import Event
from pipelines.silver.stops.commit_activity import CommitActivity
from pipelines.silver.stops.stop import Stop
from schemas.coordinator_log import EventKind
from schemas.states import Evidence

QUEUED_MS = 1_000
"""Commits that waited for a coordinator are stored in this time around its first reply, often several at once."""

FENCED_MS = 9_000
"""Default of broker.session.timeout.ms: a dead broker's partitions get new leaders and in-sync replicas after it."""

STALL_MS = 30_000
"""Default of replica.lag.time.max.ms: the longest time for which one replica holds up a partition."""

START_MS = 250
"""A process that starts needs longer than this until it asks for a member id."""

COMMIT_MS = 5_000
"""Default of auto.commit.interval.ms."""


@dataclass(frozen=True)
class Clients:
    """The member ids of each client id and host in the previous generation and in this one.

    They are found once, and only if a session expired.
    """

    previous: Generation
    g: Generation

    @cached_property
    def before(self) -> Mapping[tuple[str, str], Sequence[str]]:
        return _by_client(self.previous.final_members)

    @cached_property
    def after(self) -> Mapping[tuple[str, str], Sequence[str]]:
        return _by_client(self.g.members)


def _by_client(members: Mapping[str, Member]) -> Mapping[tuple[str, str], Sequence[str]]:
    out: dict[tuple[str, str], list[str]] = {}
    for member_id, member in members.items():
        out.setdefault((member.client_id, member.client_host), []).append(member_id)
    return out


def returned(member: Member, line: Event | None, clients: Clients, log: GenerationLog) -> Event | None:
    """Return the line with which the client of a removed member asked for a new id before the old one was removed.

    `line` is the line of the departure. The clients of both ids are the same if no other member of both generations has
    this client id and host.
    """
    if line is None or line.kind != EventKind.SESSION_EXPIRED or member.group_instance_id:
        return None
    client = member.client_id, member.client_host
    before, after = clients.before.get(client, ()), clients.after.get(client, ())
    if len(before) != 1 or len(after) != 1:
        return None
    asked = log.asked.get(after[0])
    return asked if asked is not None and asked.at <= line.until else None


def returned_stop(
    stop: Stop, member: Member, done: CommitActivity, asked: Event, line: Event, loaded: Event | None
) -> Stop:
    """Return the stop of a member whose client asked for a new id.

    It stopped before it asked. If its process went on, or may have, nothing shows that it worked after its last commit
    that was stored in time, and later commits are older than their records.

    Args:
        stop: the stop if the process ended.
        member: the removed member.
        done: its commits.
        asked: the line with which its client asked.
        line: the line of its removal.
        loaded: the line with which another coordinator loaded the group since the last generation, if any.
    """
    session_ms = member.session_timeout_ms
    until = (asked.at if loaded is None else min(asked.at, loaded.at)) - QUEUED_MS
    in_time = [at for at in done.known if at < until]
    newest = max(in_time, default=done.since)
    is_last = done.last == newest
    if loaded is None and not _went_on(done, newest, asked, line.at - session_ms, session_ms // 3):
        return Stop.within(stop.earliest, min(stop.latest, asked.until), stop.estimate, stop.evidence)
    # If the newest known commit may be old, because only late ones follow, the longest stall is the better bound.
    proven = done.working_at if is_last else max(newest - COMMIT_MS, asked.at - session_ms - STALL_MS)
    earliest = max(done.since, proven)
    began = newest + done.interval // 2 if is_last else max(newest, asked.at - session_ms)
    estimate = began if session_ms <= FENCED_MS else min(asked.at, began + session_ms)
    if done.last is not None and done.last > newest and done.has_late_commit and done.stopped is not None:
        # The progress of late commits shows until when there were records.
        estimate = done.stopped if done.working_at in in_time else min(estimate, done.stopped)
    return Stop.within(min(earliest, stop.earliest), asked.until, estimate, Evidence.INFERRED)


def _went_on(done: CommitActivity, newest: int, asked: Event, heard: int, heartbeat_ms: int) -> bool:
    """Return whether the process went on: it was heard until it asked, or for longer than it committed.

    `newest` is the time of the last commit that was stored in time, `heard` when the last session began.
    """
    if max([heard, *done.known[-1:]]) > asked.at - START_MS:
        return True
    interval = done.interval if done.last == newest else 0
    return heard - newest > max(2 * interval, heartbeat_ms)
