"""What is said of members that went, came or kept the others waiting: who, how often, how long, what settles it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from pipelines.gold.diagnosis.cases import Case
from pipelines.gold.diagnosis.causes import never_leaves
from pipelines.gold.diagnosis.departures import Departure, lasts_a_poll
from pipelines.gold.wording import median_duration, period, times, upper, with_counts
from schemas.states import Evidence, GroupEventKind, Trigger
from schemas.thresholds import PAUSED_LOOP_MS, SHORT_SESSION_MS, TOGETHER_MS
from schemas.written import count, duration


def poll_timeout(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return (
            f"{count(len(case.rows), 'rebalance')} followed members that did not join again within their "
            "max.poll.interval.ms; which they were is not recorded."
        )
    limits = sorted({d.membership.rebalance_timeout_ms for d in gone if d.membership.rebalance_timeout_ms})
    limit = f"its max.poll.interval.ms of {either(limits)}" if limits else "its max.poll.interval.ms"
    said = sum(d.evidence == Evidence.OBSERVED for d in gone)
    by_length = sum(d.membership.how != GroupEventKind.POLL_TIMEOUT and lasts_a_poll(d.membership) for d in gone)
    parts = [
        (
            f"{with_counts(d.instance.label for d in gone)} did not poll within {limit}{every(gone)}: it goes, "
            "and joins again."
        )
    ]
    told = {
        "the client or the coordinator says so": said,
        "its stay lasted just so long": by_length,
        "it had been silent for so long": len(gone) - said - by_length,
    }
    speaks = ", ".join(f"{text} ({times(count)})" for text, count in told.items() if count)
    parts.append(f"What speaks for it: {speaks}.")
    parts.append("Its log (“poll timeout”, “maximum poll interval”) settles it; what took so long is not in our data.")
    return " ".join(parts)


def session_expiry(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return f"The coordinator dropped members whose session expired, {times(len(case.rows))}; which is not recorded."
    # A KIP-848 member's session is the broker's setting (group.consumer.session.timeout.ms), not its own.
    sessions = sorted({d.membership.session_timeout_ms for d in gone if d.membership.session_timeout_ms})
    whose = f" ({either(sessions)})" if sessions else ""
    parts = [f"The session{whose} of {with_counts(d.instance.label for d in gone)} expired{every(gone)}."]
    parts.append(_together(case, gone) or _one_by_one(gone))
    if sessions and max(sessions) <= SHORT_SESSION_MS:
        parts.append(
            f"A session.timeout.ms of {duration(max(sessions))} is short: since Kafka 3.0 the default is 45 s."
        )
    if any(never_leaves(g) for g in case.rows):
        parts.append("Kafka Streams does not say that it leaves: a plain stop looks the same.")
    elif any(d.membership.group_instance_id for d in gone):
        parts.append("Static members do not leave: a stop longer than the session, or a late poll, looks the same.")
    else:
        parts.append("The process's own log (start, pauses) settles it.")
    return " ".join(parts)


def _together(case: Case, gone: Sequence[Departure]) -> str | None:
    """Several members within seconds: what they have in common."""
    for d in gone:
        near = [o for o in gone if abs(o.at - d.at) <= TOGETHER_MS]
        if len({o.instance.label for o in near}) < 2:
            continue
        there = [
            s
            for instance in case.known.instances
            for s in instance.memberships
            if s.arrived_at < d.at - TOGETHER_MS and (s.gone_at or d.at) >= d.at - TOGETHER_MS
        ]
        if len(near) >= len(there):
            return "All members at once: the network to the coordinator, or its broker, rather than a member."
        hosts = {o.membership.client_host for o in near}
        if len(hosts) == 1 and any(one.client_host not in hosts for one in there):
            return f"{count(len(near), 'member')} of host {min(hosts)} at once, others not: the host or its network."
        return f"{count(len(near), 'member')} at once, on {count(len(hosts), 'host')}: something they share."
    return None


def _one_by_one(gone: Sequence[Departure]) -> str:
    back = [d.away_ms for d in gone if d.away_ms is not None]
    early, late = sum(ms < 0 for ms in back), [ms for ms in back if ms >= 0]
    parts = []
    if early:
        often = upper(of(early, len(gone)))
        parts.append(f"{often} the next process joined before the session ended: it had died and was started again.")
    if late and median(late) <= PAUSED_LOOP_MS:
        parts.append(
            f"Back {median_duration(late)} after it was dropped: a process that paused (garbage collection, CPU, a "
            "frozen host), or a new one that needs that long."
        )
    elif late:
        parts.append(f"Back {median_duration(late)} after it was dropped: more likely started again than paused.")
    if not back:
        parts.append("Not back by the end of what is recorded: dead, or cut off.")
    return " ".join(parts)


def deploy(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return f"{with_counts(case.names)} came back from a restart, or with another subscription."
    back = [d for d in gone if d.away_ms is not None]
    replaced, size = len(gone) - len(back), case.size(gone[0].at)
    parts = []
    if back:
        restarted = Counter(d.instance.number for d in back)
        most = max(restarted.values())
        often = f"{times(most)} at most" if most > 1 else "once each" if len(restarted) > 1 else "once"
        away = median_duration([max(0, d.away_ms or 0) for d in back])
        were = "was" if len(restarted) == 1 else "were"
        parts.append(f"{len(restarted)} of {count(size, 'instance')} restarted, {often}, and {were} back after {away}.")
    if replaced:
        parts.append(f"{count(replaced, 'instance')} left as a new one came in its place.")
    if any(d.membership.how == GroupEventKind.SESSION_EXPIRED for d in gone):
        parts.append("They do not say that they leave, so their sessions had to expire; a death looks the same.")
    return " ".join([*parts, _pattern(gone, size, is_sure=case.is_announced)])


def _pattern(gone: Sequence[Departure], size: int, *, is_sure: bool) -> str:
    went = len({d.instance.number for d in gone})
    if size < 2 or 3 * went < 2 * size:
        looks = "a restart, not a deploy of all"
    elif gone[size - 1 if len(gone) >= size else -1].at - gone[0].at <= TOGETHER_MS:
        looks = "a deploy that stops everything first"
    else:
        looks = "a rolling deploy, one after another"
    return f"That was {looks}." if is_sure else f"That looks like {looks}; only a mark (regroup mark) makes sure."


def scaling(case: Case) -> str:
    came = case.arrivals()
    new = sum(a.after is None for a in came)
    left = sum(d.membership.went_with in case.numbers for d in case.departures())
    starts = sum(g["trigger"] == Trigger.FIRST_MEMBER for g in case.rows)
    stops = sum(bool(g["is_empty"]) for g in case.rows)
    again = f", {len(came) - new:,} came back after more than an hour" if len(came) > new else ""
    parts = [f"{count(new, 'instance')} came that had not been seen before{again}, {left:,} left and stayed away."]
    if starts:
        parts.append(f"The group started {times(starts)}.")
    if stops:
        parts.append(f"The last member left {times(stops)}.")
    return " ".join(parts)


def crash_loop(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return f"{with_counts(case.names)} came back in a loop."
    lives = [d.at - d.membership.arrived_at for d in gone[1:]] or [gone[0].membership.held_ms]
    back = [max(0, d.away_ms) for d in gone if d.away_ms is not None]
    left = sum(d.membership.how == GroupEventKind.LEFT for d in gone)
    ways = f"{left} of {len(gone)} times it left by itself, else its session expired."
    again = f" and was back {median_duration(back)} after it went" if back else ""
    return (
        f"{with_counts(d.instance.label for d in gone)} went again and again: it lived "
        f"{median_duration(lives)}{again} (medians). {ways} Its exit code and restart count "
        "settle it; why it ends is not in our data."
    )


def slow_joiner(case: Case) -> str:
    waits = [g["slowest_waited_ms"] or 0 for g in case.rows]
    behind = Counter(found.set_off_by for found in case.found)
    kinds = ", ".join(f"{cause.value.replace('_', ' ')} ({times(count)})" for cause, count in sorted(behind.items()))
    return (
        f"Everybody waited for {with_counts(case.names)}: {median_duration(waits)} (median), "
        f"{duration(max(waits))} at most. It joins with its next poll, after its revocation "
        "callback; its own log tells which of them takes so long. "
        f"What began them: {kinds}."
    )


def every(gone: Sequence[Departure]) -> str:
    """How often the one that went most often did."""
    counted = Counter(d.instance.number for d in gone)
    often = min(counted, key=lambda n: (-counted[n], n))
    usual = period([d.at for d in gone if d.instance.number == often])
    return "" if usual is None else f", every {duration(usual)}"


def either(limits: Sequence[int]) -> str:
    return duration(limits[0]) if limits[0] == limits[-1] else f"{duration(limits[0])} to {duration(limits[-1])}"


def of(count: int, total: int) -> str:
    return "each time" if count == total else f"{count} of {total} times"
