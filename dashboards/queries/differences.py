"""What the rebalances of a range have that those of the range before had not: values with their numbers in both."""

from __future__ import annotations

from enum import StrEnum

from dashboards.lake.file_index import ALWAYS, Between
from dashboards.lake.lake import LakeError, Parameter, Row, moment
from dashboards.queries.cause_queries import named
from dashboards.queries.causes import Scope
from dashboards.queries.gold_store import GoldStore, window_parameters
from dashboards.urlstate import Window
from schemas.coordinator_log import EventKind
from schemas.states import ClientLibrary

VALUE_ROWS = 2_000


COUNTED = """SELECT attribute, value, CAST(sum(here) AS BIGINT) AS here, CAST(count(*) - sum(here) AS BIGINT) AS before
FROM valued GROUP BY attribute, value
ORDER BY attribute = 'all' DESC, here DESC, attribute, value LIMIT $cap
"""


class Attribute(StrEnum):
    """What two ranges are compared by.

    The values of a rebalance are those of its verdict; of the last three: the libraries of all its members, the
    software that they told the brokers (KIP-714), and the broker whose log says that the join phase ended.
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
    SELECT DISTINCT cluster, group_id, member_id, concat_ws(' ', software_name, software_version) AS software
    FROM client_metrics
    WHERE measured_at >= $since AND measured_at < $end AND member_id IS NOT NULL AND software_name IS NOT NULL
), joined AS (
    SELECT DISTINCT s.cluster, s.group_id, s.incarnation, s.generation_id, s.here, m.member_id, m.client_library
    FROM seen s JOIN generation_members m USING (cluster, group_id, incarnation, generation_id)
), valued AS (
    SELECT DISTINCT '{Attribute.LIBRARY}' AS attribute, client_library AS value, here, cluster, group_id, incarnation,
                    generation_id
    FROM joined WHERE client_library <> '{ClientLibrary.UNKNOWN}'
    UNION ALL
    SELECT DISTINCT '{Attribute.SOFTWARE}', software, here, cluster, group_id, incarnation, generation_id
    FROM joined JOIN pushed USING (cluster, group_id, member_id)
    UNION ALL
    SELECT DISTINCT '{Attribute.COORDINATOR}', CAST(broker_id AS STRING), here, cluster, group_id, s.incarnation,
                    generation_id
    FROM seen s JOIN coordinator_events e USING (cluster, group_id, generation_id)
    WHERE e.event_kind = '{EventKind.STABILIZED}' AND e.broker_id IS NOT NULL
      -- A group that was deleted begins to count again.
      AND e.event_at >= s.joined_at - INTERVAL 1 MINUTE AND e.event_at <= s.joined_at + INTERVAL 1 MINUTE
)
{COUNTED}"""  # noqa: S608 - our own names


def _seen(team: str, condition: str, of_groups: str, judged: str) -> str:
    return f"""WITH {named(team, condition)}, seen AS (
    SELECT cluster, group_id, incarnation, generation_id, joined_at, cause, instances, hosts,
           CASE WHEN joined_at >= $start THEN 1 ELSE 0 END AS here
    FROM verdicts WHERE joined_at >= $since AND joined_at < $end AND {of_groups} AND {judged}
)"""  # noqa: S608 - our own names


def values_of(store: GoldStore, view: Window, before: Window, scope: Scope) -> list[Row]:
    """Return the values of the two ranges, the most frequent in `view` first; the row of `ALL` comes before them."""
    limits = (scope.label, scope.of_groups, scope.of_rows, scope.of_verdicts)
    between = moment(before.start), moment(view.end)
    tables: dict[str, Between] = {"verdicts": between, "groups": ALWAYS}
    given: dict[str, Parameter] = {**scope.parameters, "since": moment(before.start), **window_parameters(view)}
    rows = store.lake.query(differences_sql(*limits), tables, VALUE_ROWS, given).rows
    tables |= dict.fromkeys(("generation_members", "client_metrics", "coordinator_events"), between)
    try:
        return rows + store.lake.query(member_differences_sql(*limits), tables, VALUE_ROWS, given).rows
    except LakeError:
        # An earlier Regroup wrote tables without these columns.
        return rows
