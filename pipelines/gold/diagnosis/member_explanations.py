"""Explanations of causes that lie with members: members that left, joined or made the others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from pipelines.gold.diagnosis.cases import Case
from pipelines.gold.diagnosis.causes import never_leaves
from pipelines.gold.diagnosis.departures import Departure, lasts_a_poll, lost_together
from pipelines.gold.wording import median_duration, period, times, with_counts
from schemas.states import Evidence, GroupEventKind, Trigger
from schemas.thresholds import PAUSED_MS, SHORT_SESSION_MS, TOGETHER_MS
from schemas.written import capitalized, count, duration, span


def poll_timeout(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return (
            f"{count(len(case.rows), 'rebalance')} happened because members did not rejoin within their "
            "max.poll.interval.ms; the records do not show which members."
        )
    limits = sorted({d.membership.rebalance_timeout_ms for d in gone if d.membership.rebalance_timeout_ms})
    limit = f"its max.poll.interval.ms of {either(limits)}" if limits else "its max.poll.interval.ms"
    reported = sum(d.evidence == Evidence.OBSERVED for d in gone)
    by_length = sum(
        d.membership.departure_kind != GroupEventKind.POLL_TIMEOUT and lasts_a_poll(d.membership) for d in gone
    )
    parts = [
        (
            f"{with_counts(d.instance.label for d in gone)} did not poll within {limit}{every(gone)}. The member then "
            "leaves or is removed, and rejoins with its next poll."
        )
    ]
    evidence = {
        "the client or the coordinator reported it": reported,
        "the membership lasted exactly that long": by_length,
        "the member had been silent for that long": len(gone) - reported - by_length,
    }
    listed = ", ".join(f"{text} ({times(count)})" for text, count in evidence.items() if count)
    parts.append(f"Evidence: {listed}.")
    parts.append(
        "The client's log (“poll timeout”, “maximum poll interval”) can confirm it; our data does not show what took "
        "so long."
    )
    return " ".join(parts)


def session_expiry(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return (
            f"The coordinator removed members because their session expired, {times(len(case.rows))}; the records do "
            "not show which members."
        )
    # The session timeout of a KIP-848 member is a broker setting (group.consumer.session.timeout.ms), so it has none.
    sessions = sorted({d.membership.session_timeout_ms for d in gone if d.membership.session_timeout_ms})
    whose = f" ({either(sessions)})" if sessions else ""
    parts = [f"The session{whose} of {with_counts(d.instance.label for d in gone)} expired{every(gone)}."]
    parts.append(_together(case, gone) or _one_by_one(gone))
    if sessions and max(sessions) <= SHORT_SESSION_MS:
        parts.append(
            f"A session.timeout.ms of {duration(max(sessions))} is short: since Kafka 3.0 the default is 45 s."
        )
    if any(never_leaves(g) for g in case.rows):
        parts.append("Kafka Streams does not send a leave request when it stops, so a normal stop looks the same.")
    elif any(d.membership.group_instance_id for d in gone):
        parts.append(
            "Static members do not send a leave request: a stop longer than the session, or a late poll, looks the "
            "same."
        )
    else:
        parts.append("The log of the process (starts, pauses) shows which it was.")
    return " ".join(parts)


def _together(case: Case, gone: Sequence[Departure]) -> str | None:
    """Return what members have in common whose sessions expired within seconds; None if only single ones expired."""
    for d in gone:
        near, there = lost_together(d, gone, case.known.instances)
        if len({o.instance.label for o in near}) < 2:
            continue
        if len(near) >= len(there):
            return "All members expired at once: suspect the network to the coordinator, or its broker, not a member."
        hosts = {o.membership.client_host for o in near}
        if len(hosts) == 1 and any(one.client_host not in hosts for one in there):
            return (
                f"{count(len(near), 'member')} on host {min(hosts)} expired at once, and no others: suspect the host "
                "or its network."
            )
        return (
            f"{count(len(near), 'member')} on {count(len(hosts), 'host')} expired at once: suspect something that they "
            "share."
        )
    return None


def _one_by_one(gone: Sequence[Departure]) -> str:
    back = [d.away_ms for d in gone if d.away_ms is not None]
    early, late = sum(ms < 0 for ms in back), [ms for ms in back if ms >= 0]
    parts = []
    if early:
        often = capitalized(of(early, len(gone)))
        parts.append(f"{often} the next process joined before the session expired: the old one had died.")
    if late and median(late) <= PAUSED_MS:
        parts.append(
            f"It was back {median_duration(late)} after its removal (median). It is either a process that paused "
            "(garbage collection, CPU, a frozen host) or a new one that starts that fast."
        )
    elif late:
        parts.append(
            f"It was back {median_duration(late)} after its removal (median): more likely restarted than paused."
        )
    if not back:
        parts.append("It was not back by the end of the recorded history: it is dead or disconnected.")
    return " ".join(parts)


def deploy(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return f"{with_counts(case.names)} returned from a restart, or with a different subscription."
    back = [d for d in gone if d.away_ms is not None]
    replaced, size = len(gone) - len(back), case.size(gone[0].at)
    parts = []
    if back:
        restarted = Counter(d.instance.number for d in back)
        most = max(restarted.values())
        often = f"{times(most)} at most" if most > 1 else "once each" if len(restarted) > 1 else "once"
        away = median_duration([max(0, d.away_ms or 0) for d in back])
        were = "was" if len(restarted) == 1 else "were"
        # Instances that share a client id and a host cannot be told apart, so more can seem to restart than there were.
        which = f"{len(restarted)} of {count(size, 'instance')}"
        if len(restarted) > size:
            which = f"{count(len(restarted), 'instance')} (at most {size:,} at a time)"
        parts.append(f"{which} restarted, {often}, and {were} back after {away}.")
    if replaced:
        replacement = "was replaced by a new one" if replaced == 1 else "were replaced by new ones"
        parts.append(f"{count(replaced, 'instance')} left and {replacement}.")
    if any(d.membership.departure_kind == GroupEventKind.SESSION_EXPIRED for d in gone):
        parts.append("Sessions had to expire because no leave request was sent; a crash looks the same.")
    return " ".join([*parts, _pattern(gone, size, is_sure=case.is_announced)])


def _pattern(gone: Sequence[Departure], size: int, *, is_sure: bool) -> str:
    departed = len({d.instance.number for d in gone})
    if size < 2 or 3 * departed < 2 * size:
        pattern = "a restart of some instances, not a deploy of all"
    elif gone[size - 1 if len(gone) >= size else -1].at - gone[0].at <= TOGETHER_MS:
        pattern = "a deploy that stops everything first"
    else:
        pattern = "a rolling deploy, one after another"
    return f"That was {pattern}." if is_sure else f"This looks like {pattern}; a mark (regroup mark) would confirm it."


def scaling(case: Case) -> str:
    came = case.arrivals()
    new = sum(a.after is None for a in came)
    left = sum(d.membership.left_in in case.numbers for d in case.departures())
    starts = sum(g["trigger"] == Trigger.FIRST_MEMBER for g in case.rows)
    stops = sum(bool(g["is_empty"]) for g in case.rows)
    again = f", {len(came) - new:,} returned after more than an hour" if len(came) > new else ""
    parts = [f"{count(new, 'instance')} joined for the first time{again}; {count(left, 'instance')} left for good."]
    if starts:
        parts.append(f"The group started {times(starts)}.")
    if stops:
        parts.append(f"The last member left {times(stops)}.")
    return " ".join(parts)


def crash_loop(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return f"{with_counts(case.names)} repeatedly left and came back."
    lengths = [d.at - d.membership.arrived_at for d in gone[1:]] or [gone[0].membership.held_ms]
    back = [max(0, d.away_ms) for d in gone if d.away_ms is not None]
    left = sum(d.membership.departure_kind == GroupEventKind.LEFT for d in gone)
    ways = f"It left on its own {of(left, len(gone))}{'' if left == len(gone) else '; otherwise its session expired'}."
    again = f" and was back {median_duration(back)} later" if back else ""
    return (
        f"{with_counts(d.instance.label for d in gone)} repeatedly left and came back: it lived "
        f"{median_duration(lengths)}{again} (medians). {ways} Its exit code and restart count can confirm a crash; our "
        "data does not show why it stops."
    )


def pod_failure(case: Case) -> str:
    gone = case.departures()
    if not gone:
        return f"{with_counts(case.names)} returned after the end of a pod."
    changes = Counter(d.pod.kind for d in gone if d.pod is not None)
    listed = ", ".join(f"{change.value.replace('_', ' ')} ({times(changes[change])})" for change in sorted(changes))
    by_name = sum(d.pod is not None and not d.pod.is_by_address for d in gone)
    parts = [f"The pods of {with_counts(d.instance.label for d in gone)} ended: {listed}."]
    parts.append("Kubernetes reported that shortly before the members were gone.")
    if by_name:
        parts.append(f"{capitalized(of(by_name, len(gone)))}, the pod is known by its name only, not by its address.")
    back = [d.away_ms for d in gone if d.away_ms is not None]
    if back:
        parts.append(f"The next process joined {median_duration([max(0, ms) for ms in back])} later (median).")
    return " ".join(parts)


def slow_joiner(case: Case) -> str:
    waits = [found.waited_ms for found in case.found]
    behind = Counter(found.set_off_by for found in case.found)
    kinds = ", ".join(f"{cause.value.replace('_', ' ')} ({times(count)})" for cause, count in sorted(behind.items()))
    unnamed = sum(not found.instances for found in case.found)
    waited_for = with_counts(case.names) if case.names else "one of them"
    text = (
        f"The other members waited for {waited_for}: {median_duration(waits)} (median), {duration(max(waits))} at "
        "most. A member joins with its next poll, after its revocation callback; its log shows which of the two is "
        "slow."
    )
    if unnamed:
        text += (
            f" {capitalized(of(unnamed, len(waits)))}, only the commits show it: all members had stopped long before "
            "the rebalance could end. The coordinator's log would name the member."
        )
    return f"{text} These rebalances were started by: {kinds}."


def every(gone: Sequence[Departure]) -> str:
    """Return `, every 5 min` if the instance that left most often did so at regular intervals, or an empty string."""
    counted = Counter(d.instance.number for d in gone)
    often = min(counted, key=lambda n: (-counted[n], n))
    usual = period([d.at for d in gone if d.instance.number == often])
    return "" if usual is None else f", every {duration(usual)}"


def either(limits: Sequence[int]) -> str:
    """Return sorted durations (milliseconds) as one duration or as a range."""
    return span(duration(limits[0]), duration(limits[-1]))


def of(count: int, total: int) -> str:
    """Return `each time` or `3 of 4 times`."""
    return "each time" if count == total else f"{count} of {total} times"
