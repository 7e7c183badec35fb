"""Each cause in one to three sentences: who, how often, how long, what speaks for it, what would settle it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pipelines.gold.diagnosis.cases import Case, longest_run
from pipelines.gold.diagnosis.member_explanations import (
    crash_loop,
    deploy,
    poll_timeout,
    scaling,
    session_expiry,
    slow_joiner,
)
from pipelines.gold.marks_nearby import marks_sentence
from pipelines.gold.memberships import number
from pipelines.gold.wording import median_duration, period, times, upper, with_counts
from schemas.states import DiagnosisCause, GroupType, Trigger
from schemas.thresholds import CONVERGED, HOUR_MS
from schemas.written import count, duration

METADATA_AGE_MS = 300_000
"""metadata.max.age.ms by default, in Java and (topic.metadata.refresh.interval.ms) in librdkafka."""


def explanation(case: Case) -> str:
    """Sentences; strangers' names in them are cut, not escaped: who shows them does that."""
    said = marks_sentence([g["joined_at"] for g in case.rows], case.marks)
    return " ".join(filter(None, (SAID[case.cause](case), said)))


def _leader_flapping(case: Case) -> str:
    usual = period([g["joined_at"] for g in case.rows])
    often = f"every {duration(usual)}" if usual is not None else times(len(case.rows))
    is_aged = usual is not None and abs(usual - METADATA_AGE_MS) <= METADATA_AGE_MS / 10
    why = " that is metadata.max.age.ms, so brokers tell it different metadata" if is_aged else ""
    return (
        f"The leader, {with_counts(case.names)}, joined again {often} although what there is to assign stayed the same"
        f":{why or ' its view of the metadata (topics, racks) goes back and forth'}. {reasons(case)}"
    )


def _follow_ups(case: Case) -> str:
    longest = longest_run(case)
    verdict = "normal" if longest <= CONVERGED else "more than two in a row do not converge"
    often = f"{times(len(case.rows))}, at most {longest} in a row"
    resolved = sum(g["trigger"] == Trigger.SUBSCRIPTION_CHANGED for g in case.rows)
    pattern = f" {upper(times(resolved))} it was a new member's pattern that was resolved." if resolved else ""
    return f"Members gave up what others shall have and joined again, {often}: {verdict}.{pattern}"


def _coordinator(case: Case) -> str:
    moved = [
        at for at in case.known.moved_at if case.rows[0]["joined_at"] - HOUR_MS <= at <= case.rows[-1]["joined_at"]
    ]
    stored = len(case.known.not_stored_at)
    parts = [
        f"{count(len(case.rows), 'rebalance')} came right after the group's coordinator moved ({times(len(moved))})."
    ]
    if not moved:
        parts = [f"{count(len(case.rows), 'rebalance')} came with assignments that could not be stored."]
    elif stored:
        parts.append(f"Assignments could not be stored {times(stored)}.")
    parts.append("That they follow from it is inferred from the time; the broker's log tells why it moved or failed.")
    return " ".join(parts)


def _topic_changes(case: Case) -> str:
    if case.rows[0]["group_type"] == GroupType.CONNECT:
        return f"Connectors or tasks were configured anew, {times(len(case.rows))}; who did it is not in our data."
    subscribed = sum(g["trigger"] == Trigger.SUBSCRIPTION_CHANGED for g in case.rows)
    handed = sum(number(g) in case.known.changed for g in case.rows)
    parts = [f"Topics, partitions or subscriptions changed, {times(len(case.rows))}."]
    if subscribed:
        parts.append(f"Members subscribed to other topics {times(subscribed)}.")
    if handed:
        parts.append(f"{upper(times(handed))} there was something else to assign than before.")
    return " ".join([*parts, reasons(case)]).strip()


def _connect_delay(case: Case) -> str:
    return (
        f"{upper(times(len(case.rows)))} scheduled.rebalance.max.delay.ms was over, and what had been lost with a "
        "worker, or was left over, was handed out. The wait before it is what costs; a shorter delay shortens it."
    )


def _probing(case: Case) -> str:
    usual = period([g["joined_at"] for g in case.rows])
    often = f"every {duration(usual)}" if usual is not None else times(len(case.rows))
    return (
        f"Kafka Streams looked whether its warm-up tasks had caught up, {often} (probing.rebalance.interval.ms, 10 min "
        "by default): normal while state is restored."
    )


def _mixed_protocols(case: Case) -> str:
    up = sum(g["trigger"] == Trigger.UPGRADE for g in case.rows)
    down = sum(g["trigger"] == Trigger.DOWNGRADE for g in case.rows)
    used = list(dict.fromkeys(g["assignor"] for g in case.rows if g["assignor"]))
    if up or down:
        return (
            "Members of both protocols use the group: "
            f"{count(up, 'upgrade')} to the consumer protocol, {count(down, 'downgrade')} from it."
        )
    return (
        f"The assignor went back and forth, to {' and '.join(used)}: members are configured differently, or a deploy "
        "was rolled back."
    )


def _unknown(case: Case) -> str:
    gone = [d for d in case.departures() if d.membership.how is None]
    again = len([g for g in case.rows if not case.known.changes(g)])
    parts = []
    if gone:
        parts.append(
            f"How {with_counts(d.instance.label for d in gone)} went is not recorded: by itself, by an expired "
            "session, or because it did not poll in time."
        )
        held = [d.membership.held_ms for d in gone]
        limits = [d.membership.rebalance_timeout_ms for d in gone]
        # A librdkafka client's timer runs from before it joined.
        if all(2 * ms < limit for ms, limit in zip(held, limits, strict=True)):
            parts.append(
                f"It stayed {median_duration(held)} (median), far less than max.poll.interval.ms: so not its poll."
            )
    if again:
        parts.append(f"{upper(times(again))} the same members joined again. {reasons(case)}".strip())
    if not parts:
        parts.append(f"Why is not recorded ({times(len(case.rows))}).")
    parts.append("The coordinator's log (regroup ship-logs), or clients that state their reason, would tell.")
    return " ".join(parts)


def reasons(case: Case) -> str:
    """What clients said, most often first."""
    said = Counter(g["client_reason"] for g in case.rows if g["client_reason"])
    if not said:
        return "No client gave a reason."
    text, count = min(said.items(), key=lambda item: (-item[1], item[0]))
    return f"Clients said “{text[:100]}” {times(count)}."


SAID: dict[DiagnosisCause, Callable[[Case], str]] = {
    DiagnosisCause.POLL_TIMEOUT: poll_timeout,
    DiagnosisCause.SESSION_EXPIRY: session_expiry,
    DiagnosisCause.DEPLOY: deploy,
    DiagnosisCause.SCALING: scaling,
    DiagnosisCause.CRASH_LOOP: crash_loop,
    DiagnosisCause.SLOW_JOINER: slow_joiner,
    DiagnosisCause.LEADER_FLAPPING: _leader_flapping,
    DiagnosisCause.FOLLOW_UPS: _follow_ups,
    DiagnosisCause.COORDINATOR: _coordinator,
    DiagnosisCause.TOPIC_CHANGES: _topic_changes,
    DiagnosisCause.CONNECT_DELAY: _connect_delay,
    DiagnosisCause.PROBING: _probing,
    DiagnosisCause.MIXED_PROTOCOLS: _mixed_protocols,
    DiagnosisCause.UNKNOWN: _unknown,
}
