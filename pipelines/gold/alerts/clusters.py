"""Alerts about storms, partitions on the move and Regroup's own sight."""

from __future__ import annotations

from pipelines.gold.alerts.alert import CLUSTER, Alert, AlertLimits, Facts, Row
from pipelines.gold.alerts.escaping import escaped, without_links
from pipelines.gold.alerts.words import instant
from pipelines.gold.storms.storms import CALM_MS
from schemas.states import AlertName, AlertSeverity, DiagnosisCause, Evidence, StormScope
from schemas.written import amount, bounded, count, duration

SOURCE = "__consumer_offsets"
NAMED = 5
"""Groups of a storm, and differences, named in a text."""


def storm(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Open storms: one alert for each group, one for the whole fleet (that of the storm that hit most groups).

    Rows tell of storms as far as records go; a cluster that has written none since has no storm.
    """
    if facts.sight.silent_ms > CALM_MS:
        return []
    fleet = [row for row in facts.storms if row["scope"] == StormScope.FLEET]
    chosen = sorted(fleet, key=lambda row: (-row["groups"], row["started_at"]))[:1]
    by_group: dict[str, Row] = {}
    for row in sorted(facts.storms, key=lambda row: row["started_at"]):
        if row["scope"] == StormScope.GROUP and row["group_ids"]:
            by_group.setdefault(row["group_ids"][0], row)
    return [_fleet(facts, row) for row in chosen] + [_of_group(facts, row) for row in by_group.values()]


def _fleet(facts: Facts, row: Row) -> Alert:
    others = row["groups"] - NAMED
    names = ", ".join(escaped(group) for group in row["group_ids"][:NAMED])
    return _storm(
        facts,
        row,
        subject=CLUSTER,
        summary=f"{count(row['groups'], 'group')} rebalance together: {_unexplained(row)}",
        hit=f"Hit hardest: {names}{f' and {others} more' if others > 0 else ''}. ",
    )


def _of_group(facts: Facts, row: Row) -> Alert:
    group = row["group_ids"][0]
    return _storm(facts, row, subject=group, summary=f"Group {escaped(group)} storms: {_unexplained(row)}", hit="")


def _storm(facts: Facts, row: Row, *, subject: str, summary: str, hit: str) -> Alert:
    lost = bounded(*(row[f"lost_resource_seconds{end}"] or 0.0 for end in ("", "_min", "_max")))
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
            f"Since {instant(row['started_at'])}, {lost} resource-seconds lost so far. {hit}Suspected cause: {why}. "
            f"{_different(row)} {without_links(row['explanation'] or '')} Evidence: {row['evidence']}."
        ),
        evidence=Evidence(row["evidence"]),
        storm_id=row["storm_id"],
    )


def _unexplained(row: Row) -> str:
    return f"{count(row['rebalances'], 'rebalance')}, {row['unexplained_rebalances']:,} of them unplanned"


def _different(row: Row) -> str:
    found = [
        f"{d['attribute']} {escaped(d['value'])} ({amount(d['lift'])} times as often)"
        for d in (row["differences"] or ())[:NAMED]
    ]
    return f"What those hit have in common: {', '.join(found)}." if found else "Nothing stands out in those hit."


def reassignment(facts: Facts, _: AlertLimits) -> list[Alert]:
    """Partitions whose new replicas receive nothing."""
    return [_stalled(facts, row) for row in facts.stalled]


def _stalled(facts: Facts, row: Row) -> Alert:
    subject = f"{row['topic']}-{row['partition']}"
    since = row["stalled_since_at"] if row["stalled_since_at"] is not None else row["started_at"]
    adding = ", ".join(map(str, row["adding"] or ())) or "not known"
    done = "an unknown share" if row["progress"] is None else f"{row['progress']:.0%}"
    return Alert(
        name=AlertName.REASSIGNMENT_STALLED,
        cluster=facts.cluster,
        subject=subject,
        severity=AlertSeverity.TICKET,
        started_ms=since,
        summary=f"The reassignment of {escaped(subject)} stands still at {done} of its bytes",
        description=(
            f"No byte has arrived since {instant(since)}; it began by {instant(row['started_at'])}, replicas to add: "
            f"{adding}. Suspected cause: a throttle, or a broker that does not fetch. Evidence: {row['evidence']}."
        ),
        evidence=Evidence(row["evidence"]),
    )


def stale(facts: Facts, limits: AlertLimits) -> list[Alert]:
    """Regroup itself sees nothing any more. Where no broker answers it is a ticket: their absence pages elsewhere."""
    sight = facts.sight
    if sight.blind_since_ms is None:
        return []
    until = "never" if sight.known_until_ms is None else f"up to {instant(sight.known_until_ms)}"
    return [
        Alert(
            name=AlertName.REBALANCE_TELEMETRY_STALE,
            cluster=facts.cluster,
            subject=SOURCE,
            severity=AlertSeverity.TICKET if sight.is_broker_there is False else AlertSeverity.PAGE,
            started_ms=sight.blind_since_ms,
            summary=f"Regroup has seen nothing of {escaped(facts.cluster)} for more than {duration(limits.stale_ms)}",
            description=(
                f"Since {instant(sight.blind_since_ms)}: {without_links(sight.why)}. The history is known {until}; "
                "until it goes on, no group of this cluster is known to be healthy and no other alert is raised or "
                f"resolved. Evidence: {Evidence.OBSERVED}."
            ),
            evidence=Evidence.OBSERVED,
        )
    ]
