"""What the rebalances of a range have that those of the range before had not: values with their numbers in both."""

from __future__ import annotations

from enum import StrEnum

from dashboards.lake.file_index import ALWAYS, Between
from dashboards.lake.lake import Parameter, Row, moment
from dashboards.queries.cause_queries import named
from dashboards.queries.causes import Scope
from dashboards.queries.gold_store import GoldStore, window_parameters
from dashboards.urlstate import Window

VALUE_ROWS = 2_000


class Attribute(StrEnum):
    """What two ranges are compared by. The values of a rebalance are those of its verdict."""

    ALL = "all"
    CAUSE = "cause"
    CLUSTER = "cluster"
    GROUP = "group"
    INSTANCE = "instance"
    HOST = "host"


def differences_sql(team: str, condition: str, of_groups: str, judged: str) -> str:
    """Return the query of `attribute`, `value`, `here` and `before`: numbers of rebalances in both ranges.

    A loop that is folded into one row counts once. The parameters are those of `over_time`, and `since`, the start of
    the range before.
    """
    return f"""
WITH {named(team, condition)}, seen AS (
    SELECT cluster, group_id, cause, instances, hosts, CASE WHEN joined_at >= $start THEN 1 ELSE 0 END AS here
    FROM verdicts WHERE joined_at >= $since AND joined_at < $end AND {of_groups} AND {judged}
), valued AS (
    SELECT '{Attribute.ALL}' AS attribute, '' AS value, here FROM seen
    UNION ALL SELECT '{Attribute.CAUSE}', cause, here FROM seen
    UNION ALL SELECT '{Attribute.CLUSTER}', cluster, here FROM seen
    UNION ALL SELECT '{Attribute.GROUP}', group_id, here FROM seen
    UNION ALL SELECT '{Attribute.INSTANCE}', unnest(instances), here FROM seen
    UNION ALL SELECT '{Attribute.HOST}', unnest(hosts), here FROM seen
)
SELECT attribute, value, CAST(sum(here) AS BIGINT) AS here, CAST(count(*) - sum(here) AS BIGINT) AS before
FROM valued GROUP BY attribute, value
ORDER BY attribute = '{Attribute.ALL}' DESC, here DESC, attribute, value LIMIT $cap
"""  # noqa: S608 - our own names


def values_of(store: GoldStore, view: Window, before: Window, scope: Scope) -> list[Row]:
    """Return the values of the two ranges, the most frequent in `view` first; the row of `ALL` comes before them."""
    sql = differences_sql(scope.label, scope.of_groups, scope.of_rows, scope.of_verdicts)
    tables: dict[str, Between] = {"verdicts": (moment(before.start), moment(view.end)), "groups": ALWAYS}
    given: dict[str, Parameter] = {**scope.parameters, "since": moment(before.start), **window_parameters(view)}
    return store.lake.query(sql, tables, VALUE_ROWS, given).rows
