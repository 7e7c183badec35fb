"""Alerts about topics that a group reads and that no member of it is assigned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipelines.gold.alerts.alert import Alert, AlertLimits, Facts, Row
from pipelines.gold.alerts.escaping import escaped, without_links
from schemas.states import AlertName, AlertSeverity, Evidence
from schemas.written import count, instant

NAMED = 3
"""Maximum number of topics named in a text."""


def unowned(facts: Facts, limits: AlertLimits) -> list[Alert]:
    """Return an alert for each group that leaves a subscribed topic without an owner for longer than the stuck limit.

    A topic counts while the newest generation shows it. A raised alert stays until that generation is analyzed.
    """
    until = facts.freshness.known_until_ms or 0
    by_group: dict[str, list[Row]] = defaultdict(list)
    for row in facts.unowned:
        is_raised = (AlertName.TOPIC_WITHOUT_OWNER, row["group_id"]) in facts.raised
        if until - row["started_at"] > limits.stuck_ms and (row["is_newest"] or is_raised):
            by_group[row["group_id"]].append(row)
    return [_unowned(facts.cluster, group, rows) for group, rows in sorted(by_group.items())]


def _unowned(cluster: str, group: str, rows: Sequence[Row]) -> Alert:
    """Return the alert: a page if a topic had an owner before, because then its records were processed until now."""
    ranked = sorted(rows, key=lambda row: (not row["had_owner"], row["started_at"], row["subject"]))
    lost = [row for row in ranked if row["had_owner"]]
    topics = ", ".join(escaped(row["subject"]) for row in ranked[:NAMED])
    more = f" and {count(len(ranked) - NAMED, 'other')}" if len(ranked) > NAMED else ""
    since = min(row["started_at"] for row in ranked)
    return Alert(
        name=AlertName.TOPIC_WITHOUT_OWNER,
        cluster=cluster,
        subject=group,
        severity=AlertSeverity.PAGE if lost else AlertSeverity.TICKET,
        started_ms=since,
        summary=f"Group {escaped(group)} has no owner for {count(len(ranked), 'subscribed topic')}: {topics}{more}",
        description=(
            f"Since {instant(since)}. {without_links(ranked[0]['explanation'])} {without_links(ranked[0]['action'])} "
            f"Evidence: {ranked[0]['evidence']}."
        ),
        evidence=Evidence(ranked[0]["evidence"]),
    )
