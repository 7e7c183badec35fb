"""Members that end without leaving, and members that poll too late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from pipelines.gold.churn import lost_ms
from pipelines.gold.diagnosis.departures import Departure
from pipelines.gold.memberships import number
from pipelines.gold.patterns.group_facts import GroupFacts, GroupFinding
from pipelines.gold.rejoin_runs import expelling_runs
from pipelines.gold.wording import median_duration, times, with_counts
from schemas.states import DiagnosisCause, Evidence, GroupEventKind, GroupType, Pattern
from schemas.thresholds import DAY_MS, DEFAULT_SESSION_MS, LOOP, POLL_SLACK_MS
from schemas.written import amount, count, duration

NEARLY_ALL = 0.9
"""Part of the restarts that must end with an expired session."""

LATE_MS = 10_000
"""Longest time between a member's last commit and its last heartbeat, plus that of the join phase without it."""

POLLS = 3
"""Late polls within a day. One is an accident of a process or its machine."""


def never_closed(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield a group of consumers that come back in rounds, as in a deploy, and nearly always let their sessions expire.

    Static members stay silent by design when they stop, and classic Streams never leaves.
    """
    if not facts.generations or any(g["group_type"] != GroupType.CONSUMER for g in facts.generations):
        return
    gone = [d for d in _departures(facts) if d.membership.group_instance_id is None and d.back is not None]
    planned = [d for d in gone if d.cause == DiagnosisCause.DEPLOY]
    silent = [d for d in planned if _has_expired(facts, d)]
    closed = [d for d in gone if d.membership.departure_kind == GroupEventKind.LEFT]
    if len(silent) < LOOP or len(silent) < NEARLY_ALL * (len(silent) + len(closed)):
        return
    names = [d.instance.label for d in silent]
    sessions = [d.membership.session_timeout_ms for d in silent if d.membership.session_timeout_ms]
    session = f" ({duration(median(sessions))})" if sessions else ""
    lost = _lost_ms(facts, silent)
    cost = (
        f" Each restart stopped its partitions for {amount(lost / 1000 / len(silent))} partition-seconds on average."
        if lost
        else ""
    )
    is_logged = all(d.membership.evidence == Evidence.OBSERVED for d in silent)
    yield GroupFinding(
        pattern=Pattern.NEVER_CLOSED,
        started_at=silent[0].membership.stopped_at or silent[0].at,
        last_at=silent[-1].at,
        ended_at=None,
        times=len(silent),
        instances=list(dict.fromkeys(names)),
        sources=facts.sources,
        evidence=Evidence.OBSERVED if is_logged else Evidence.INFERRED,
        explanation=(
            f"{len(silent):,} of {count(len(silent) + len(closed), 'restart')} ended with an expired session, one "
            f"instance after another as in a deploy: {with_counts(names)}. None of these processes left the group, so "
            f"the coordinator waited for the session timeout{session} each time.{cost}"
        ),
        action=(
            "Close the consumer on shutdown: handle SIGTERM, leave the poll loop (wakeup in Java), and call close. "
            "Give the process enough time before it is killed (terminationGracePeriodSeconds). Check that the "
            "container passes SIGTERM on to the process: a shell as first process does not."
        ),
    )


def _has_expired(facts: GroupFacts, d: Departure) -> bool:
    """Return whether a member's session expired.

    Without the log, its last commit must be one session timeout before its end: on a quiet topic, a member that leaves
    was silent too, but for any time.
    """
    if d.membership.departure_kind != GroupEventKind.SESSION_EXPIRED:
        return False
    if d.membership.evidence == Evidence.OBSERVED:
        return True
    commits = [s["last_commit_at"] for s in facts.silver["stalls"] if s["from_member_id"] == d.membership.member_id]
    last = max((at for at in commits if at is not None), default=None)
    session_ms = d.membership.session_timeout_ms or DEFAULT_SESSION_MS
    return last is not None and 0 <= d.at - last - session_ms + POLL_SLACK_MS <= LATE_MS


def _departures(facts: GroupFacts) -> list[Departure]:
    known = facts.known
    every = [*known.returns, *(d for mine in known.departures.values() for d in mine)]
    return sorted(every, key=lambda d: (d.at, d.instance.label))


def _lost_ms(facts: GroupFacts, gone: Sequence[Departure]) -> int:
    """Return the resource-milliseconds lost in these departures, without earlier rebalances of the same members."""
    ends = {(d.membership.member_id, d.membership.left_in) for d in gone}
    return sum(
        lost_ms(stall)
        for stall in facts.silver["stalls"]
        if (stall["from_member_id"], (stall["incarnation"], stall["generation_id"])) in ends
    )


def poll_timeouts(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield the newest days in a row in which members polled late, at least three times within a day."""
    run: list[Departure] = []
    expelled = {number(g) for each in expelling_runs(facts.life) for g in each}
    for d in _departures(facts):
        if d.cause != DiagnosisCause.POLL_TIMEOUT or d.membership.left_in in expelled:
            continue
        if run and d.at - run[-1].at > DAY_MS:
            run = []
        run.append(d)
    if not any(later.at - first.at <= DAY_MS for first, later in zip(run, run[POLLS - 1 :], strict=False)):
        return
    names = [d.instance.label for d in run]
    limits = sorted({d.membership.rebalance_timeout_ms for d in run if d.membership.rebalance_timeout_ms})
    limit = f" of {duration(limits[0])}" if limits else ""
    reported = sum(d.evidence == Evidence.OBSERVED for d in run)
    away = [max(0, d.away_ms) for d in run if d.away_ms is not None]
    back = f" They were back {median_duration(away)} later (median)." if away else ""
    yield GroupFinding(
        pattern=Pattern.POLL_TIMEOUTS,
        started_at=run[0].membership.stopped_at or run[0].at,
        last_at=run[-1].at,
        ended_at=facts.ended(run[-1].at),
        times=len(run),
        instances=sorted(set(names), key=lambda name: (-names.count(name), name)),
        sources=facts.sources,
        evidence=Evidence.OBSERVED if reported == len(run) else Evidence.INFERRED,
        explanation=(
            f"{with_counts(names)} did not poll within the {facts.poll_limit}{limit}, {times(len(run))} in all. "
            f"The client or the coordinator reported it {times(reported) if reported else 'never'}.{back}"
        ),
        action=(
            "Handle fewer records per poll (max.poll.records in Java), or hand them to other threads and pause the "
            "partitions. "
            f"Raise the {facts.poll_limit} only above the longest time that a batch takes, and only if that time has "
            "an upper bound: a handler that blocks for ever then stops its partitions for longer."
        ),
    )
