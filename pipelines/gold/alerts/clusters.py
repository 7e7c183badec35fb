"""Alerts about storms, offsets partitions that are down, stalled reassignments and missing data."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.gold.alerts.alert import CLUSTER, Alert, AlertLimits, Facts, Row
from pipelines.gold.alerts.escaping import escaped, without_links
from pipelines.gold.alerts.words import verdict
from pipelines.gold.storms.storms import CALM_MS
from schemas import loss_interval
from schemas.records import OFFSETS_TOPIC
from schemas.states import AlertName, AlertSeverity, DiagnosisCause, Evidence, Pattern, StormScope
from schemas.written import amount, count, duration, instant, percent

DOWN_MS = 60_000
"""Minimum time in ms that an offsets partition is down before it is an alert: a normal failover takes seconds."""

LAST_SEEN_MS = 300_000
"""Maximum time in ms since the data last showed that an offsets partition is down: failed writes may be that far apart.
"""

NAMED = 5
"""Maximum number of groups of a storm, and of differences, named in a text."""


def storm(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Return alerts for open storms: one per group, and one for the fleet (the storm that affects most groups)."""
    storms = open_storms(facts)
    fleet = [row for row in storms if row["scope"] == StormScope.FLEET]
    chosen = sorted(fleet, key=lambda row: (-row["groups"], row["started_at"]))[:1]
    by_group: dict[str, Row] = {}
    for row in sorted(storms, key=lambda row: row["started_at"]):
        if row["scope"] == StormScope.GROUP and row["group_ids"]:
            by_group.setdefault(row["group_ids"][0], row)
    return [_fleet(facts, row) for row in chosen] + [_of_group(facts, row) for row in by_group.values()]


def open_storms(facts: Facts) -> Sequence[Row]:
    """Return the storms that go on.

    Stored storms stay open at the end of the history. If the cluster has written no record since, there is no storm.
    """
    return [] if facts.freshness.silent_ms > CALM_MS else facts.storms


def _fleet(facts: Facts, row: Row) -> Alert:
    others = row["groups"] - NAMED
    names = ", ".join(escaped(group) for group in row["group_ids"][:NAMED])
    return _storm(
        facts,
        row,
        subject=CLUSTER,
        summary=f"{count(row['groups'], 'group')} rebalance at the same time: {_unexplained(row)}",
        hit=f"Greatest loss: {names}{f' and {others} more' if others > 0 else ''}. ",
    )


def _of_group(facts: Facts, row: Row) -> Alert:
    group = row["group_ids"][0]
    summary = f"Group {escaped(group)} has a rebalance storm: {_unexplained(row)}"
    return _storm(facts, row, subject=group, summary=summary, hit="")


def _storm(facts: Facts, row: Row, *, subject: str, summary: str, hit: str) -> Alert:
    lost = loss_interval.of_row(row)
    cause = row["suspected_cause"]
    why = "not known" if cause in (None, DiagnosisCause.UNKNOWN) else f"{cause} (score {row['score'] or 0:.2f})"
    return Alert(
        name=AlertName.REBALANCE_STORM,
        cluster=facts.cluster,
        subject=subject,
        severity=AlertSeverity.PAGE,
        started_ms=row["started_at"],
        summary=summary,
        description=(
            f"Since {instant(row['started_at'])}, {lost} resource-seconds were lost. {hit}{_verdict(row)} Suspected "
            f"cause: {why}. "
            f"{_different(row)} {without_links(row['explanation'] or '')} Evidence: {row['evidence']}."
        ),
        evidence=Evidence(row["evidence"]),
        storm_id=row["storm_id"],
    )


def _verdict(row: Row) -> str:
    """Return a sentence on what the rebalances that cost most are blamed on, with its part of the loss."""
    sums = row.get("verdicts") or ()
    whole = sum(each["lost_resource_seconds"] for each in sums)
    lost = sum(each["lost_resource_seconds"] for each in sums if each["verdict"] == row["verdict"])
    return verdict(row.get("verdict"), Evidence.INFERRED, f"{percent(lost / whole)} of the loss" if whole > 0 else "")


def _unexplained(row: Row) -> str:
    return f"{count(row['rebalances'], 'rebalance')}, {row['unexplained_rebalances']:,} of them unplanned"


def _different(row: Row) -> str:
    found = [
        f"{d['attribute']} {escaped(d['value'])} ({amount(d['lift'])} times as often as the others)"
        for d in (row["differences"] or ())[:NAMED]
    ]
    return f"The affected share {', '.join(found)}." if found else "No attribute distinguishes the affected."


def reassignment(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Return alerts for partitions whose new replicas receive no data."""
    return [_stalled(facts, row) for row in facts.stalled]


def _stalled(facts: Facts, row: Row) -> Alert:
    subject = f"{row['topic']}-{row['partition']}"
    since = row["stalled_since_at"] if row["stalled_since_at"] is not None else row["started_at"]
    adding = ", ".join(map(str, row["adding"] or ())) or "not known"
    done = "an unknown share" if row["progress"] is None else percent(row["progress"])
    return Alert(
        name=AlertName.REASSIGNMENT_STALLED,
        cluster=facts.cluster,
        subject=subject,
        severity=AlertSeverity.TICKET,
        started_ms=since,
        summary=f"The reassignment of {escaped(subject)} has stalled at {done} of its bytes",
        description=(
            f"No byte has arrived since {instant(since)}. The reassignment began by {instant(row['started_at'])}. "
            f"Replicas to add: {adding}. Suspected cause: a throttle, or a broker that does not fetch. "
            f"Evidence: {row['evidence']}."
        ),
        evidence=Evidence(row["evidence"]),
    )


def offsets_partition(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Return one alert for each offsets partition that is down, instead of one for each of its groups."""
    return [_partition(facts, row) for row in partitions_down(facts)]


def partitions_down(facts: Facts) -> list[Row]:
    """Return the patterns of partitions that are down now and have been for `DOWN_MS`, as far as the data shows."""
    until = facts.freshness.known_until_ms or 0
    return [
        row
        for row in facts.patterns
        if row["pattern"] == Pattern.OFFSETS_PARTITION_DOWN
        and row["evidence"] != Evidence.INFERRED
        and row["last_at"] - row["started_at"] >= DOWN_MS
        and until - row["last_at"] <= LAST_SEEN_MS
    ]


def _partition(facts: Facts, row: Row) -> Alert:
    hit = count(row["groups"], "group")
    return Alert(
        name=AlertName.OFFSETS_PARTITION_DOWN,
        cluster=facts.cluster,
        subject=row["subject"],
        severity=AlertSeverity.PAGE,
        started_ms=row["started_at"],
        summary=f"{escaped(row['subject'])} is down: {hit} can neither commit nor rebalance",
        description=(
            f"{without_links(row['explanation'])} No other alert about these groups is raised meanwhile. Next: "
            f"{without_links(row['action'])} Evidence: {row['evidence']}, from {' and '.join(row['sources'])}."
        ),
        evidence=Evidence(row["evidence"]),
    )


def stale(facts: Facts, limits: AlertLimits) -> list[Alert]:
    """Return an alert if Regroup gets no data. If no broker responds, it is a ticket: other monitoring pages then."""
    freshness = facts.freshness
    if freshness.blind_since_ms is None:
        return []
    known = (
        "No history is known"
        if freshness.known_until_ms is None
        else f"History ends at {instant(freshness.known_until_ms)}"
    )
    return [
        Alert(
            name=AlertName.REBALANCE_TELEMETRY_STALE,
            cluster=facts.cluster,
            subject=OFFSETS_TOPIC,
            severity=AlertSeverity.TICKET if freshness.is_broker_there is False else AlertSeverity.PAGE,
            started_ms=freshness.blind_since_ms,
            summary=f"Regroup has no new data of {escaped(facts.cluster)} for more than {duration(limits.stale_ms)}",
            description=(
                f"Since {instant(freshness.blind_since_ms)}: {without_links(freshness.why)}. {known}. Until new data "
                "arrives, the health of this cluster's groups is unknown, and no other alert is raised or resolved. "
                f"Evidence: {Evidence.OBSERVED}."
            ),
            evidence=Evidence.OBSERVED,
        )
    ]
