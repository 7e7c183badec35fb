"""Explanation of each cause in a few sentences: which members, how often, how long, the evidence, how to confirm it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pipelines.gold.diagnosis.cases import Case, longest_run
from pipelines.gold.diagnosis.member_explanations import (
    crash_loop,
    deploy,
    pod_failure,
    poll_timeout,
    scaling,
    session_expiry,
    slow_joiner,
)
from pipelines.gold.marks_nearby import marks_sentence
from pipelines.gold.memberships import number
from pipelines.gold.wording import median_duration, period, times, with_counts
from schemas.folded_rows import count_of, instants_of
from schemas.states import DiagnosisCause, GroupType, Trigger
from schemas.thresholds import CONVERGED, HOUR_MS
from schemas.written import count, duration

METADATA_AGE_MS = 300_000
"""Default of metadata.max.age.ms in Java and of topic.metadata.refresh.interval.ms in librdkafka."""


def explanation(case: Case) -> str:
    """Return the sentences that explain a cause. Untrusted names are cut; whoever displays them must escape them."""
    of_rebalances = SENTENCES[case.cause](case) if case.rows else ""
    near_marks = marks_sentence(case.moments, case.marks)
    return " ".join(filter(None, (of_rebalances, _returns(case), near_marks)))


def _returns(case: Case) -> str:
    """Return what static members did that came back within their session; empty if none did."""
    if not case.returns:
        return ""
    text = (
        f"{with_counts(d.instance.label for d in case.returns)} came back without a rebalance: a static member keeps "
        "its partitions while its session lasts, and they stop until it is back."
    )
    if case.cause == DiagnosisCause.CRASH_LOOP:
        lengths = [d.at - d.membership.arrived_at for d in case.returns]
        text += (
            f" It lived {median_duration(lengths)} (median), again and again: its exit code and restart count can "
            "confirm a crash."
        )
    return text


def _leader_flapping(case: Case) -> str:
    usual = period(instants_of(case.rows))
    often = f"every {duration(usual)}" if usual is not None else times(case.rebalances)
    is_aged = usual is not None and abs(usual - METADATA_AGE_MS) <= METADATA_AGE_MS / 10
    why = (
        "The interval is metadata.max.age.ms, so brokers return different metadata to it."
        if is_aged
        else "Its view of the metadata (topics, racks) changes back and forth."
    )
    return (
        f"The leader, {with_counts(case.names)}, rejoined {often} although the resources to assign stayed the same. "
        f"{why} {reasons(case)}"
    )


def _rejoin_loop(case: Case) -> str:
    usual = period(instants_of(case.rows))
    often = f"every {duration(usual)}" if usual is not None else times(case.rebalances)
    expelled = sum(number(g) in case.known.expelling for g in case.rows)
    parts = []
    if case.rebalances > expelled:
        parts.append(f"Members rejoined {often} although nothing had changed: the assignment was the same each time.")
    if expelled:
        parts.append(
            f"{with_counts(case.names)} replaced each other in {count(expelled, 'generation')}, although none had left "
            "and no session can have expired: their rebalance timeout leaves the others no time to join."
        )
    return " ".join([*parts, reasons(case)]).strip()


def _follow_ups(case: Case) -> str:
    longest = longest_run(case)
    verdict = (
        "This is normal." if longest <= CONVERGED else "More than two in a row mean that the group does not converge."
    )
    often = f"{times(case.rebalances)}, at most {longest} in a row"
    resolved = sum(g["trigger"] == Trigger.SUBSCRIPTION_CHANGED for g in case.rows)
    pattern = f" The reason was {times(resolved)} that a new member's pattern was resolved." if resolved else ""
    return f"Members released resources for other members and rejoined, {often}. {verdict}{pattern}"


def _coordinator(case: Case) -> str:
    moved = [
        at for at in case.known.moved_at if case.rows[0]["joined_at"] - HOUR_MS <= at <= case.rows[-1]["joined_at"]
    ]
    stored = len(case.known.not_stored_at)
    parts = [
        f"{count(case.rebalances, 'rebalance')} came right after the group's coordinator moved ({times(len(moved))})."
    ]
    if not moved:
        parts = [f"{count(case.rebalances, 'rebalance')} had an assignment that the coordinator could not store."]
    elif stored:
        parts.append(f"The coordinator failed to store an assignment {times(stored)}.")
    parts.append(
        "The connection is inferred from the times; the broker's log shows why the coordinator moved or failed."
    )
    return " ".join(parts)


def _topic_changes(case: Case) -> str:
    if case.rows[0]["group_type"] == GroupType.CONNECT:
        return f"Connectors or tasks were reconfigured, {times(case.rebalances)}; our data does not show by whom."
    subscribed = sum(g["trigger"] == Trigger.SUBSCRIPTION_CHANGED for g in case.rows)
    handed = sum(number(g) in case.known.changed for g in case.rows)
    parts = [f"Topics, partitions or subscriptions changed, {times(case.rebalances)}."]
    if subscribed:
        parts.append(f"Members subscribed to different topics {times(subscribed)}.")
    if handed:
        parts.append(f"The set of resources to assign changed {times(handed)}.")
    return " ".join([*parts, reasons(case)]).strip()


def _connect_delay(case: Case) -> str:
    return (
        f"scheduled.rebalance.max.delay.ms expired {times(case.rebalances)}. Connectors and tasks that were lost with "
        "a worker, or unassigned, were then assigned. The cost is the wait before that; a shorter delay shortens it."
    )


def _probing(case: Case) -> str:
    usual = period(instants_of(case.rows))
    often = f"every {duration(usual)}" if usual is not None else times(case.rebalances)
    return (
        f"Kafka Streams checked whether its warm-up tasks had caught up, {often} (probing.rebalance.interval.ms, 10 "
        "min by default). This is normal while state is restored."
    )


def _mixed_protocols(case: Case) -> str:
    up = sum(g["trigger"] == Trigger.UPGRADE for g in case.rows)
    down = sum(g["trigger"] == Trigger.DOWNGRADE for g in case.rows)
    used = list(dict.fromkeys(g["assignor"] for g in case.rows if g["assignor"]))
    if up or down:
        return (
            "The group has members of both protocols: "
            f"{count(up, 'upgrade')} to the consumer protocol, {count(down, 'downgrade')} from it."
        )
    return (
        f"The assignor changed back and forth between {' and '.join(used)}: members are configured differently, or a "
        "deploy was rolled back."
    )


def _unknown(case: Case) -> str:
    gone = [d for d in case.departures() if d.membership.departure_kind is None]
    again = count_of(g for g in case.rows if not case.known.changes(g))
    parts = []
    if gone:
        parts.append(
            f"How {with_counts(d.instance.label for d in gone)} left is not recorded: on its own, because its session "
            "expired, or because it did not poll in time."
        )
        lengths = [d.membership.held_ms for d in gone]
        limits = [d.membership.rebalance_timeout_ms for d in gone]
        # The factor of two is needed because a librdkafka client's poll timer starts before the client joins.
        if all(2 * ms < limit for ms, limit in zip(lengths, limits, strict=True)):
            parts.append(
                f"It stayed {median_duration(lengths)} (median), far less than max.poll.interval.ms, so a late poll is "
                "excluded."
            )
    if again:
        parts.append(f"The same members rejoined {times(again)}. {reasons(case)}".strip())
    if not parts:
        parts.append(f"The cause is not recorded ({times(case.rebalances)}).")
    parts.append("The coordinator's log (regroup ship-logs), or clients that send a reason, would show the cause.")
    return " ".join(parts)


def reasons(case: Case) -> str:
    """Return a sentence with the client reason that occurs most often."""
    counted = Counter(g["client_reason"] for g in case.rows if g["client_reason"])
    if not counted:
        return "No client gave a reason."
    text, count = min(counted.items(), key=lambda item: (-item[1], item[0]))
    return f"Clients gave the reason “{text[:100]}” {times(count)}."


SENTENCES: dict[DiagnosisCause, Callable[[Case], str]] = {
    DiagnosisCause.POLL_TIMEOUT: poll_timeout,
    DiagnosisCause.SESSION_EXPIRY: session_expiry,
    DiagnosisCause.DEPLOY: deploy,
    DiagnosisCause.SCALING: scaling,
    DiagnosisCause.POD_FAILURE: pod_failure,
    DiagnosisCause.CRASH_LOOP: crash_loop,
    DiagnosisCause.SLOW_JOINER: slow_joiner,
    DiagnosisCause.LEADER_FLAPPING: _leader_flapping,
    DiagnosisCause.REJOIN_LOOP: _rejoin_loop,
    DiagnosisCause.FOLLOW_UPS: _follow_ups,
    DiagnosisCause.COORDINATOR: _coordinator,
    DiagnosisCause.TOPIC_CHANGES: _topic_changes,
    DiagnosisCause.CONNECT_DELAY: _connect_delay,
    DiagnosisCause.PROBING: _probing,
    DiagnosisCause.MIXED_PROTOCOLS: _mixed_protocols,
    DiagnosisCause.UNKNOWN: _unknown,
}
