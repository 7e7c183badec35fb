"""The values of the rebalances of a range and of the range before, with their numbers in both."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from dashboards.lake.file_index import ALWAYS, Between
from dashboards.lake.lake import LakeError, Parameter, Row, moment
from dashboards.queries.cause_queries import GENERATION, named
from dashboards.queries.causes import Scope
from dashboards.queries.gold_store import GoldStore, window_parameters
from dashboards.urlstate import Window
from schemas.coordinator_log import EventKind
from schemas.states import ClientLibrary

VALUE_ROWS = 2_000
MEMBER = "hash(cluster, group_id, member_id)"
COUNTED = """SELECT attribute, value, CAST(sum(here) AS BIGINT) AS here, CAST(count(*) - sum(here) AS BIGINT) AS before
FROM valued GROUP BY attribute, value
ORDER BY attribute = 'all' DESC, here DESC, attribute, value LIMIT $cap
"""


class Attribute(StrEnum):
    """An attribute by which two ranges are compared. Its values for a rebalance are those of the verdict.

    The values of the last three are the libraries of all members, the software that the members reported to the brokers
    (KIP-714), and the broker whose log says that the join phase ended.
    """

    ALL = "all"
    CAUSE = "cause"
    CLUSTER = "cluster"
    GROUP = "group"
    INSTANCE = "instance"
    HOST = "host"
    LIBRARY = "library"
    SOFTWARE = "software"
    COORDINATOR = "coordinator"


class Values(NamedTuple):
    """Rows of `attribute`, `value`, `here` and `before`, the most frequent first; the row of `ALL` comes before them.

    `is_capped`: whether only the most frequent values are there. `has_members`: whether the last three attributes are.
    """

    rows: list[Row]
    is_capped: bool
    has_members: bool


def differences_sql(team: str, condition: str, of_groups: str, judged: str) -> str:
    """Return the query of `attribute`, `value`, `here` and `before`: numbers of rebalances in both ranges.

    A loop that is folded into one row counts once. The parameters are those of `over_time`, and `since`, the start of
    the range before.
    """
    return f"""
{_seen(team, condition, of_groups, judged)}, valued AS (
    SELECT '{Attribute.ALL}' AS attribute, '' AS value, here FROM seen
    UNION ALL SELECT '{Attribute.CAUSE}', cause, here FROM seen
    UNION ALL SELECT '{Attribute.CLUSTER}', cluster, here FROM seen
    UNION ALL SELECT '{Attribute.GROUP}', group_id, here FROM seen
    UNION ALL SELECT '{Attribute.INSTANCE}', unnest(instances), here FROM seen
    UNION ALL SELECT '{Attribute.HOST}', unnest(hosts), here FROM seen
)
{COUNTED}"""  # noqa: S608 - our own names


def member_differences_sql(team: str, condition: str, of_groups: str, judged: str) -> str:
    """Return the query of the same columns, with the attributes that other tables than `verdicts` have."""
    return f"""
{_seen(team, condition, of_groups, judged)}, pushed AS (
    SELECT DISTINCT {MEMBER} AS member, concat_ws(' ', software_name, software_version) AS value
    FROM client_metrics
    WHERE measured_at >= $since AND measured_at < $end AND member_id IS NOT NULL AND software_name IS NOT NULL
), members AS (
    SELECT {GENERATION} AS made, {MEMBER} AS member, client_library AS value
    FROM generation_members WHERE valid_from_at >= $since
), of_rebalances AS (
    SELECT DISTINCT '{Attribute.LIBRARY}' AS attribute, value, made
    FROM members WHERE value <> '{ClientLibrary.UNKNOWN}'
    UNION ALL
    SELECT DISTINCT '{Attribute.SOFTWARE}', pushed.value, made FROM members JOIN pushed USING (member)
    UNION ALL
    SELECT DISTINCT '{Attribute.COORDINATOR}', CAST(broker_id AS STRING), made
    FROM seen JOIN coordinator_events USING (cluster, group_id, generation_id)
    WHERE event_kind = '{EventKind.STABILIZED}' AND broker_id IS NOT NULL
      -- A group that was deleted begins to count again.
      AND event_at >= joined_at - INTERVAL 1 MINUTE AND event_at <= joined_at + INTERVAL 1 MINUTE
), valued AS (
    SELECT attribute, value, here FROM of_rebalances JOIN seen USING (made)
)
{COUNTED}"""  # noqa: S608 - our own names


def _seen(team: str, condition: str, of_groups: str, judged: str) -> str:
    return f"""WITH {named(team, condition)}, seen AS (
    SELECT {GENERATION} AS made, cluster, group_id, generation_id, joined_at, cause, instances, hosts,
           CASE WHEN joined_at >= $start THEN 1 ELSE 0 END AS here
    FROM verdicts WHERE joined_at >= $since AND joined_at < $end AND {of_groups} AND {judged}
)"""  # noqa: S608 - our own names


def values_of(store: GoldStore, view: Window, before: Window, scope: Scope) -> Values:
    """Return the values of the two ranges."""
    limits = (scope.label, scope.of_groups, scope.of_rows, scope.of_verdicts)
    between = moment(before.start), moment(view.end)
    tables: dict[str, Between] = {"verdicts": between, "groups": ALWAYS}
    given: dict[str, Parameter] = {**scope.parameters, "since": moment(before.start), **window_parameters(view)}
    rows = store.lake.query(differences_sql(*limits), tables, VALUE_ROWS, given)
    tables |= dict.fromkeys(("generation_members", "client_metrics", "coordinator_events"), between)
    try:
        more = store.lake.query(member_differences_sql(*limits), tables, VALUE_ROWS, given)
    except LakeError:
        # An earlier Regroup wrote tables without these columns, or the range is too long for the memory of the pages.
        return Values(rows.rows, is_capped=rows.is_capped, has_members=False)
    return Values(rows.rows + more.rows, is_capped=rows.is_capped or more.is_capped, has_members=True)
