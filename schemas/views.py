"""Views over silver and gold for people who ask in SQL: plain names, units in the names, the grade of each claim.

A view exists where tables have names (`catalog.schema`). The SQL runs on open-source Spark and on Databricks SQL.
`{generations}` and the like are the names of the tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schemas.folded_rows import counted
from schemas.gold import VERDICTS
from schemas.silver import GENERATIONS
from schemas.states import DiagnosisCause, Evidence, GenerationOutcome, GroupProtocol, GroupType, Verdict
from schemas.tables import Column, Table, columns


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view over `tables`, whose `query` selects `columns` in this order. The types are those of its result."""

    name: str
    tables: tuple[Table, ...]
    comment: str
    columns: tuple[Column, ...]
    query: str

    @property
    def definition(self) -> str:
        """Return a hash of everything that the stored view has from this definition."""
        return hashlib.sha256(repr((self.comment, self.columns, self.query)).encode()).hexdigest()

    def sql(self, names: Mapping[str, str]) -> str:
        """Return the query over the tables with these names in SQL, by their plain names."""
        return self.query.format_map(names)


def _any_of(values: Iterable[str]) -> str:
    return ", ".join(values)


V_REBALANCES = View(
    name="v_rebalances",
    tables=(GENERATIONS, VERDICTS),
    comment=(
        "Rebalances of Kafka consumer groups, Connect clusters and Streams applications: when, how long, why, who was "
        "involved and what each cost. One row per rebalance; a row of a loop is many (rebalances), so add up "
        "rebalances instead of counting rows. Columns ending in _evidence say how a value is known."
    ),
    columns=columns(f"""
        cluster                   | STRING    | Name of the Kafka cluster
        group_id                  | STRING    | Group
        incarnation               | INT       | How often the group id started anew before; with generation_id, it tells the rebalances of a group apart
        generation_id             | INT       | Generation, or group epoch, that the rebalance led to
        rebalanced_at             | TIMESTAMP | When the rebalance stopped waiting for members (UTC); the time by which rebalances are counted
        started_at_earliest       | TIMESTAMP | Lower bound of its start
        started_at_latest         | TIMESTAMP | Upper bound of its start
        completed_at              | TIMESTAMP | When it completed, in a loop the last; NULL if it is open, or if the next one overtook it
        outcome                   | STRING    | {_any_of(GenerationOutcome)}
        rebalances                | INT       | Number of rebalances in the row: 1, or those of a loop that only differ in number and time
        duration_seconds          | DOUBLE    | Length, in a loop of the first; NULL unless a record or log line contains start and end
        duration_seconds_min      | DOUBLE    | Lower bound of the length; NULL until it completed
        duration_seconds_max      | DOUBLE    | Upper bound of the length; NULL until it completed
        duration_evidence         | STRING    | How start and end are known: {_any_of(Evidence)}
        group_type                | STRING    | {_any_of(GroupType)}
        group_protocol            | STRING    | {_any_of(GroupProtocol)}
        assignor                  | STRING    | Assignor: range, cooperative-sticky, uniform, ...; NULL if the record has none
        members                   | INT       | Number of members after it
        trigger                   | STRING    | Why it began, for example member_joined, member_left, session_expired, poll_timeout or subscription_changed; unknown if no source shows it
        trigger_evidence          | STRING    | How the trigger is known: {_any_of(Evidence)}
        trigger_member_id         | STRING    | Member named by the trigger; NULL if none is
        slowest_member_id         | STRING    | Member for which the others waited; NULL if it is not known
        slowest_waited_seconds    | DOUBLE    | How long the others waited for it
        verdict                   | STRING    | What it is blamed on: {_any_of(Verdict)}; NULL if it did not complete or is not analyzed yet
        cause                     | STRING    | Cause to investigate: {_any_of(DiagnosisCause)}
        verdict_evidence          | STRING    | How verdict and cause are known: {_any_of(Evidence)}
        instances                 | STRING    | Instances that the verdict is about, comma-separated: instance ids, client ids and hosts; empty if none is known
        hosts                     | STRING    | Hosts of these instances, comma-separated; empty if none is known
        reason                    | STRING    | Why, in one sentence
        lost_resource_seconds     | DOUBLE    | Best estimate of what was lost: seconds without processing, added over partitions, tasks and connectors
        lost_resource_seconds_min | DOUBLE    | Lower bound of the loss
        lost_resource_seconds_max | DOUBLE    | Upper bound of the loss
    """),
    query="""
SELECT g.cluster, g.group_id, g.incarnation, g.generation_id,
       g.joined_at AS rebalanced_at, g.prepared_at_earliest AS started_at_earliest,
       g.prepared_at_latest AS started_at_latest, coalesce(g.last_completed_at, g.completed_at) AS completed_at,
       g.outcome, coalesce(g.folded_count, 1) AS rebalances,
       g.rebalance_ms / 1000D AS duration_seconds, g.rebalance_ms_min / 1000D AS duration_seconds_min,
       g.rebalance_ms_max / 1000D AS duration_seconds_max, g.evidence AS duration_evidence,
       g.group_type, g.group_protocol, g.assignor, g.member_count AS members,
       g.`trigger`, g.trigger_evidence, g.trigger_member_id,
       g.slowest_member_id, g.slowest_waited_ms / 1000D AS slowest_waited_seconds,
       v.verdict, v.cause, v.evidence AS verdict_evidence,
       array_join(v.instances, ', ') AS instances, array_join(v.hosts, ', ') AS hosts, v.reason,
       v.lost_resource_seconds, v.lost_resource_seconds_min, v.lost_resource_seconds_max
FROM {generations} AS g
LEFT JOIN {verdicts} AS v
  ON v.cluster = g.cluster AND v.group_id = g.group_id
 AND v.incarnation = g.incarnation AND v.generation_id = g.generation_id
""",
)

V_LOST_BY_CAUSE = View(
    name="v_lost_by_cause",
    tables=(VERDICTS,),
    comment=(
        "What rebalances cost, per cluster, group, UTC day, verdict and cause. Only completed and analyzed rebalances "
        "count; group_health also has the loss of static members that returned without a rebalance."
    ),
    columns=columns(f"""
        cluster                   | STRING    | Name of the Kafka cluster
        group_id                  | STRING    | Group
        day                       | DATE      | UTC day of the rebalances
        verdict                   | STRING    | What they are blamed on: {_any_of(Verdict)}
        cause                     | STRING    | Cause to investigate: {_any_of(DiagnosisCause)}
        rebalances                | BIGINT    | Number of rebalances
        rebalances_observed       | BIGINT    | Number of these whose verdict a record or log line contains
        rebalances_bounded        | BIGINT    | Number of these of which only limits are known
        rebalances_inferred       | BIGINT    | Number of these whose verdict is inferred
        lost_resource_seconds     | DOUBLE    | Best estimate of what was lost: seconds without processing, added over partitions, tasks and connectors
        lost_resource_seconds_min | DOUBLE    | Lower bound of the loss: the sum of all lower bounds
        lost_resource_seconds_max | DOUBLE    | Upper bound of the loss: the sum of all upper bounds
    """),
    # A day of UTC, also in a session with another time zone.
    query=f"""
SELECT cluster, group_id, date_from_unix_date(CAST(floor(unix_seconds(joined_at) / 86400) AS INT)) AS day,
       verdict, cause, {counted()} AS rebalances,
       {counted("evidence = 'observed'")} AS rebalances_observed,
       {counted("evidence = 'bounded'")} AS rebalances_bounded,
       {counted("evidence = 'inferred'")} AS rebalances_inferred,
       sum(lost_resource_seconds) AS lost_resource_seconds,
       sum(lost_resource_seconds_min) AS lost_resource_seconds_min,
       sum(lost_resource_seconds_max) AS lost_resource_seconds_max
FROM {{verdicts}}
GROUP BY ALL
""",  # noqa: S608 - our own names
)

VIEWS = (V_REBALANCES, V_LOST_BY_CAUSE)
