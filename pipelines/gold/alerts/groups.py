"""Alerts about one group: stuck, flapping, availability burn."""

from __future__ import annotations

from collections import Counter, defaultdict

from pipelines.gold.alerts.alert import Alert, AlertLimits, Facts, Row
from pipelines.gold.alerts.burn import burning
from pipelines.gold.alerts.escaping import escaped, without_links
from pipelines.gold.alerts.words import diagnosed_verdict, suspected, verdict, worst
from schemas import loss_interval
from schemas.states import AlertName, AlertSeverity, Evidence, Pattern, Verdict
from schemas.written import amount, count, duration, instant, percent

NAMED = 3
"""Maximum number of instances named in a text."""


def stuck(facts: Facts, limits: AlertLimits) -> list[Alert]:
    """Return alerts for groups whose rebalance has been open for longer than the limit at the end of the history."""
    until = facts.freshness.known_until_ms or 0
    waits = {row["subject"]: row for row in facts.patterns if row["pattern"] == Pattern.STUCK_REBALANCE}
    found = [
        _stuck(facts, row, limits, waits.get(row["group_id"]))
        for row in facts.rebalancing
        if not row["is_deleted"] and until - row["open_rebalance_since_at"] > limits.stuck_ms
    ]
    known = {row["group_id"] for row in facts.rebalancing}
    polled = [
        _polled(facts, row, limits)
        for group, row in sorted(waits.items())
        if group not in known
        and row["last_at"] - row["started_at"] > limits.stuck_ms
        # Old polls neither raise nor resolve an alert.
        and (facts.is_polled(limits) or (AlertName.GROUP_STUCK_REBALANCING, group) in facts.raised)
    ]
    return found + polled


def _stuck(facts: Facts, row: Row, limits: AlertLimits, wait: Row | None) -> Alert:
    group, since = row["group_id"], row["open_rebalance_since_at"]
    # A wait of an earlier rebalance names others.
    is_same = wait is not None and wait["started_at"] == since
    whom = f"{_waits(wait)} " if wait is not None and is_same else ""
    return Alert(
        name=AlertName.GROUP_STUCK_REBALANCING,
        cluster=facts.cluster,
        subject=group,
        severity=AlertSeverity.PAGE,
        started_ms=since,
        summary=f"A rebalance of group {escaped(group)} has not completed for more than {duration(limits.stuck_ms)}",
        description=(
            f"The rebalance began by {instant(since)}. The group is in state {row['state']} with "
            f"{count(row['member_count'] or 0, 'member')}; its last generation is {row['generation_id']}. {whom}"
            f"{_stuck_verdict(facts, group, wait if is_same else None)} "
            f"{suspected(facts.causes.get(group))} Evidence: {row['evidence']}."
        ),
        evidence=Evidence(row["evidence"]),
    )


def _polled(facts: Facts, wait: Row, limits: AlertLimits) -> Alert:
    """Return the alert for a rebalance that only polls show."""
    group = wait["subject"]
    return Alert(
        name=AlertName.GROUP_STUCK_REBALANCING,
        cluster=facts.cluster,
        subject=group,
        severity=AlertSeverity.PAGE,
        started_ms=wait["started_at"],
        summary=f"A rebalance of group {escaped(group)} has not completed for more than {duration(limits.stuck_ms)}",
        description=(
            f"{_waits(wait)} {_stuck_verdict(facts, group, wait)} {suspected(facts.causes.get(group))} "
            f"Evidence: {wait['evidence']}, from polls."
        ),
        evidence=Evidence(wait["evidence"]),
    )


def _waits(wait: Row) -> str:
    """Return whom the group waits for, what ends that, and what to do."""
    return f"{without_links(wait['explanation'])} Next: {without_links(wait['action'])}"


def _stuck_verdict(facts: Facts, group: str, wait: Row | None) -> str:
    """Return a sentence on the verdict of a rebalance that is open, so that no row of `verdicts` is about it yet.

    A group that waits for its members is the application's. Otherwise only the verdict of earlier rebalances is known.
    """
    if wait is not None and wait["instances"]:
        return verdict(Verdict.CLIENT_APPLICATION, wait["evidence"], "because the group waits for its members")
    diagnosis = facts.causes.get(group)
    if diagnosis is None or diagnosis.get("verdict") in (None, Verdict.UNKNOWN):
        return verdict(None, "")
    return verdict(diagnosis["verdict"], Evidence.INFERRED, "as in its earlier rebalances")


def flapping(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Return alerts for groups in which an instance left repeatedly in the last full hour or the current one."""
    hours: dict[str, list[Row]] = defaultdict(list)
    for row in facts.flapping:
        hours[row["group_id"]].append(row)
    gone: dict[str, list[Row]] = defaultdict(list)
    for row in facts.departures:
        gone[row["group_id"]].append(row)
    return [_flapping(facts, group, rows, gone[group]) for group, rows in sorted(hours.items())]


def _flapping(facts: Facts, group: str, rows: list[Row], departures: list[Row]) -> Alert:
    since = min(row["hour_at"] for row in rows)
    number = max(row["flapping_members"] for row in rows)
    gone = [row for row in departures if row["hour_at"] >= since]
    times: Counter[str] = Counter()
    for row in gone:
        times[row["instance"]] += row["times"]
    often = times.most_common(NAMED)
    members = ", ".join(f"{escaped(name)} ({count(many, 'time')})" for name, many in often) or "not known"
    grade = worst(row["evidence"] for row in gone)
    return Alert(
        name=AlertName.MEMBER_FLAPPING,
        cluster=facts.cluster,
        subject=group,
        severity=AlertSeverity.TICKET,
        started_ms=since,
        summary=f"{count(number, 'instance')} of group {escaped(group)} left at least 3 times in an hour",
        description=(
            f"Departures since {instant(since)}, most frequent first: {members}. "
            f"{diagnosed_verdict(facts.causes.get(group))} {suspected(facts.causes.get(group))} Evidence: {grade}."
        ),
        evidence=grade,
    )


def burn(facts: Facts, limits: AlertLimits) -> list[Alert]:
    """Return alerts for groups that lose resource-time faster than their availability target allows."""
    found = []
    for loss in facts.losses:
        is_raised = (AlertName.AVAILABILITY_BURN, loss.group_id) in facts.raised
        if (pair := burning(loss, limits.availability, is_raised=is_raised)) is None:
            continue
        stopped, group = loss.windows[pair.long_ms], loss.group_id
        rates = [amount(loss.burn(window, limits.availability)) for window in (pair.long_ms, pair.short_ms)]
        lost = loss_interval.written(*(ms / 1000 for ms in (stopped.lost_ms, stopped.low_ms, stopped.high_ms)))
        found.append(
            Alert(
                name=AlertName.AVAILABILITY_BURN,
                cluster=facts.cluster,
                subject=group,
                severity=pair.severity,
                started_ms=loss.windows[pair.short_ms].first_ms,
                summary=f"Group {escaped(group)} lost {lost} resource-seconds in {duration(pair.long_ms)}",
                description=(
                    f"That is {rates[0]} times the loss that an availability of {percent(limits.availability, 3)} "
                    f"allows (in the last {duration(pair.short_ms)}: {rates[1]} times). The group has "
                    f"{amount(stopped.resources)} resources. "
                    f"{diagnosed_verdict(facts.causes.get(group))} {suspected(facts.causes.get(group))} Evidence: "
                    f"{Evidence.BOUNDED}."
                ),
                evidence=Evidence.BOUNDED,
            )
        )
    return found
