"""Commits of one member between two group records, and the stop that they bound.

No record or line shows the exact time of a stop. The following facts limit it:

- A member works until the coordinator's first "Preparing to rebalance", unless it started the rebalance itself.
- An eager member has given up everything when the join phase ends.
- A commit with progress proves work before it.
- Clients that commit automatically commit once more *after* they stopped, on revocation and on close
  (`ConsumerCoordinator.onJoinPrepare`). So only the last commit but one is certainly before the stop.
- librdkafka continues to commit during the application's revocation callback, and repeats the last commit on close.
  Then only the commit before these two is certainly before the stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipelines.silver.generations import Generation
from pipelines.silver.history import ROUND_MS, CommitHistory, CommitSegment, Position, Resource

LATE_COMMIT_MS = 250
"""The last commit was made after the stop if it is more than this many milliseconds later than its progress explains.
"""


class CommitActivity(NamedTuple):
    """The commits of one member between two group records, in milliseconds.

    - `since`: when the member got its resources
    - `working_at`: a time at which it certainly worked, even if the last round of commits came after the stop: the last
      round but one, else `since`
    - `last`: the last round; None if the member did not commit
    - `stopped`: the best estimate of the stop from commits alone: the last round, or the time at which the member, at
      its previous rate, had made the progress of a late last round; None if the member did not commit
    - `interval`: the time between the last two rounds; 0 if there are fewer
    - `repeated_at`: a last round without progress, which the other fields ignore: a client makes one on close, after
      its callbacks
    - `known`: times of commits, newest last
    - `backlog`: for a member that departed, whether records waited for the next owner (`member_stops`)
    - `is_blocked`: for a member that departed, whether its last commits made no progress although records waited
    """

    since: int
    working_at: int
    last: int | None = None
    stopped: int | None = None
    interval: int = 0
    repeated_at: int | None = None
    known: Sequence[int] = ()
    backlog: bool | None = None
    is_blocked: bool = False

    @property
    def has_late_commit(self) -> bool:
        return self.stopped != self.last


def work(
    commits: CommitHistory, resources: Iterable[Resource], since: int, after: Position, before: Position
) -> CommitActivity:
    """Return the commits for `resources` between two positions; `since` is when the member got them."""
    return work_of([s for r in resources if (s := commits.segment(r, after, before))], since)


def work_of(segments: Sequence[CommitSegment], since: int) -> CommitActivity:
    """Return the activity of one member. `segments` has each of its resources' commits since the member got it."""
    if not segments:
        return CommitActivity(since=since, working_at=since)
    known = sorted({p.at for s in segments for p in s if p is not None})
    repeated_at = _repeated_at(segments)
    if repeated_at is not None:
        segments = [_shortened(s) if s.last.at >= repeated_at - ROUND_MS else s for s in segments]
    last = max(s.last.at for s in segments)
    ends = [p.at for s in segments for p in (s.before_last, s.last) if p is not None and p.at < last - ROUND_MS]
    progress, rate = 0.0, 0.0
    for s in segments:
        if s.before_last is None or s.before_last.at - s.first.at < LATE_COMMIT_MS:
            continue
        rate += (s.before_last.committed - s.first.committed) / (s.before_last.at - s.first.at)
        progress += s.last.committed - s.before_last.committed
    before_last = max(ends, default=None)
    stopped = last
    if before_last is not None and rate > 0 and progress >= 0:
        explained = min(last, before_last + round(progress / rate))
        ended = last if repeated_at is None else repeated_at
        stopped = explained if ended - explained > LATE_COMMIT_MS else last
    return CommitActivity(
        since=since,
        working_at=since if before_last is None else before_last,
        last=last,
        stopped=stopped,
        interval=0 if before_last is None else last - before_last,
        repeated_at=repeated_at,
        known=known,
    )


def _repeated_at(segments: Sequence[CommitSegment]) -> int | None:
    """Return the time of the last round of commits if it made no progress and the round before it did."""
    last = max(s.last.at for s in segments)
    ending = [s for s in segments if s.last.at >= last - ROUND_MS]
    if any(s.before_last is None or s.before_last.committed != s.last.committed for s in ending):
        return None
    progressed = any(s.third_last is None or s.third_last.committed < s.last.committed for s in ending)
    return last if progressed else None


def _shortened(segment: CommitSegment) -> CommitSegment:
    assert segment.before_last is not None
    return segment._replace(third_last=None, before_last=segment.third_last, last=segment.before_last)


def work_by_member(
    previous: Generation, commits: CommitHistory, before: Position, only: str | None = None
) -> dict[str, CommitActivity]:
    """Return the commits of each final member of a generation, or of one, up to the group record at `before`."""
    since = {m: (previous.position, previous.synced_at, member.assigned) for m, member in previous.members.items()}
    for change in previous.replacements:
        if change.record.position < before:
            assigned = since.pop(change.old)[2]
            at = previous.synced_at if change.record.at is None else change.record.at
            since[change.member.member_id] = (change.record.position, at, assigned)
    chosen = since if only is None else {only: since[only]}
    return {m: work(commits, mine, at, after, before) for m, (after, at, mine) in chosen.items()}
