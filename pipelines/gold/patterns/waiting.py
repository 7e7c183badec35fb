"""Rebalances in which all members wait for the same one: it is dead, or it is blocked between two polls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.gold.memberships import number
from pipelines.gold.patterns.group_facts import LOG, TOPIC, GroupFacts, GroupFinding
from pipelines.gold.wording import median_duration, times
from schemas.rows import GenerationRow
from schemas.states import Evidence, GroupEventKind, GroupProtocol, Pattern
from schemas.thresholds import SLOW_TIMES, VERY_SLOW_MS
from schemas.written import duration

LONG_MS = 30_000
"""A single wait this long is reported if it also uses up most of the rebalance timeout."""

MOST, LIMIT_SLACK = 0.8, 0.05
"""Part of the rebalance timeout that counts as most of it; part by which a wait may miss the timeout to end just before
it."""

LEAST_SLACK_MS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """A join phase that waited for one member; `limit_ms` is the timeout that would have ended it at the latest.

    `is_dead`: the member's session expired. `is_removed`: the coordinator went on without the member.
    """

    g: GenerationRow
    instance: str
    waited_ms: int
    limit_ms: int
    is_dead: bool
    is_removed: bool

    @property
    def is_near_limit(self) -> bool:
        slack = max(LEAST_SLACK_MS, self.limit_ms * LIMIT_SLACK)
        return not self.is_dead and self.limit_ms > 0 and abs(self.limit_ms - self.waited_ms) <= slack


def waiting_for_one(facts: GroupFacts) -> Iterator[GroupFinding]:
    """Yield each instance that the others waited for at least three times, or once until its poll interval was over.

    The coordinator's log is needed: records do not contain the start of a join phase.
    """
    by_instance: dict[str, list[_Wait]] = defaultdict(list)
    for wait in _waits(facts):
        by_instance[wait.instance].append(wait)
    for instance, waits in sorted(by_instance.items()):
        blocked = [w for w in waits if not w.is_dead]
        is_long = any(w.waited_ms >= LONG_MS and w.waited_ms >= MOST * w.limit_ms > 0 for w in blocked)
        if len(blocked) >= SLOW_TIMES or is_long:
            yield _finding(facts, instance, blocked, _blocked(facts, instance, blocked), _unblock(facts, blocked))
        elif len(dead := [w for w in waits if w.is_dead]) >= SLOW_TIMES:
            yield _finding(facts, instance, dead, _dead(instance, dead), CLOSE)


CLOSE = (
    "Find out why the process ends without leaving the group: close the consumer on SIGTERM and after errors, or let "
    "the orchestrator wait longer before it kills the process. A shorter session timeout only shortens each wait."
)


def _waits(facts: GroupFacts) -> Iterator[_Wait]:
    for g in facts.generations:
        member, waited = g["slowest_member_id"], g["slowest_waited_ms"] or 0
        name = None if member is None else facts.known.name(member)
        if g["group_protocol"] != GroupProtocol.CLASSIC or member is None or name is None:
            continue
        kinds = {e["kind"] for e in facts.departures_in(g) if e["member_id"] == member}
        # A shorter wait is normal: members learn of a rebalance with their next heartbeat, or after a fetch.
        if waited < VERY_SLOW_MS or not (number(g) in facts.known.slow or kinds):
            continue
        is_dead = GroupEventKind.SESSION_EXPIRED in kinds
        session_ms, limit_ms = _timeouts(facts, member)
        yield _Wait(
            g=g,
            instance=name,
            waited_ms=waited,
            limit_ms=session_ms if is_dead else limit_ms,
            is_dead=is_dead,
            is_removed=GroupEventKind.POLL_TIMEOUT in kinds,
        )


def _timeouts(facts: GroupFacts, member_id: str) -> tuple[int, int]:
    """Return a member's session and rebalance timeout in milliseconds; 0 if not known."""
    of_member = (
        membership
        for instance in facts.known.instances
        for membership in instance.memberships
        if membership.member_id == member_id
    )
    found = next(of_member, None)
    return (found.session_timeout_ms, found.rebalance_timeout_ms) if found else (0, 0)


def _finding(facts: GroupFacts, instance: str, waits: Sequence[_Wait], explanation: str, action: str) -> GroupFinding:
    first, last = waits[0].g, waits[-1].g
    return GroupFinding(
        pattern=Pattern.WAITING_FOR_ONE,
        subject=instance,
        started_at=first["joined_at"] - waits[0].waited_ms,
        last_at=last["joined_at"],
        ended_at=facts.ended(last["joined_at"]),
        times=len(waits),
        instances=[instance],
        sources=(TOPIC, LOG),
        evidence=Evidence.INFERRED,
        explanation=explanation,
        action=action,
    )


def _blocked(facts: GroupFacts, instance: str, waits: Sequence[_Wait]) -> str:
    lengths = [w.waited_ms for w in waits]
    limit = max(w.limit_ms for w in waits)
    removed, near = sum(w.is_removed for w in waits), sum(w.is_near_limit and not w.is_removed for w in waits)
    parts = [
        (
            f"All members waited for {instance} {times(len(waits))}: {median_duration(lengths)} (median), "
            f"{duration(max(lengths))} at most."
        )
    ]
    if limit:
        parts.append(f"Its {facts.poll_limit} is {duration(limit)}.")
    if removed:
        parts.append(f"The coordinator removed it {times(removed)}, because it had not joined until its timeout.")
    if near:
        parts.append(
            f"It joined just before that timeout {times(near)}: something in its poll loop or callback waits for a "
            "time of its own that is a little shorter."
        )
    return " ".join(parts)


def _unblock(facts: GroupFacts, waits: Sequence[_Wait]) -> str:
    style = (
        "Take a thread dump of this instance while the others wait: a member joins only with its next poll, after its "
        "revocation callback. Look for a blocking call without a timeout, or with one of minutes."
    )
    if any(w.is_near_limit for w in waits):
        return (
            f"{style} Do not raise the {facts.poll_limit}: the wait may grow with it. Shorten the wait in the callback."
        )
    return f"{style} Handle fewer records per poll if the handler is slow."


def _dead(instance: str, waits: Sequence[_Wait]) -> str:
    lengths, session_ms = [w.waited_ms for w in waits], max(w.limit_ms for w in waits)
    session = f"its session of {duration(session_ms)}" if session_ms else "its session"
    return (
        f"All members waited for {instance} {times(len(waits))} although it was dead: {median_duration(lengths)} "
        f"(median), until {session} expired. It had not left the group."
    )
