"""What happened to a storm's groups in its span, added up by DuckDB: a long one of many groups has millions of rows."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.gold.storms.places import HOUR_MS
from schemas.states import StallCause

COST = f"""
WITH mine AS (
    SELECT *, coalesce(epoch_ms(prepared_at), epoch_ms(prepared_at_latest)) AS prepared_ms
    FROM generations
    WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) AND epoch_ms(joined_at) BETWEEN $begin AND $end
), spans AS (
    SELECT group_id, greatest($begin, prepared_ms) AS start_ms,
           least($end, coalesce(epoch_ms(completed_at), $end)) AS end_ms
    FROM mine
), joined AS (
    SELECT start_ms, end_ms, max(end_ms) OVER (
        PARTITION BY group_id ORDER BY start_ms, end_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS until_ms
    FROM spans
), lost AS (
    SELECT * FROM stalls
    WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups))
        AND stopped_ms IS NOT NULL AND cause <> '{StallCause.NO_MEMBER}'
        AND epoch_ms(stopped_at_latest) BETWEEN $begin - {HOUR_MS} AND $end + {HOUR_MS}
        AND (epoch_ms(stopped_at_latest) BETWEEN $begin AND $end
            OR (group_id, incarnation, generation_id) IN (SELECT (group_id, incarnation, generation_id) FROM mine))
)
SELECT
    (SELECT count(*) FROM mine) AS rebalances,
    (SELECT coalesce(sum(stopped_ms_min), 0)::BIGINT FROM lost) AS lost_min,
    (SELECT coalesce(sum(stopped_ms), 0)::BIGINT FROM lost) AS lost,
    (SELECT coalesce(sum(stopped_ms_max), 0)::BIGINT FROM lost) AS lost_max,
    (SELECT coalesce(sum(greatest(0, end_ms - greatest(start_ms, coalesce(until_ms, start_ms)))), 0)::BIGINT
        FROM joined) AS under_way
"""  # noqa: S608 - our own names
"""Of rows of `generations` and `stalls` around a storm's time: how many rebalances its groups began between `begin` and
`end`, resource-milliseconds lost to these or within, and milliseconds in which one was under way, over all groups.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What happened to a storm's groups in its span. Resource-seconds; `unstable` is the share of the storm's time in
    which a rebalance was under way, on average over its groups.
    """

    rebalances: int
    lost_min: float
    lost: float
    lost_max: float
    unstable: float
