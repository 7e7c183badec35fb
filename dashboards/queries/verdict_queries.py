"""SQL on the verdicts, for `dashboards.queries.gold_store`. The rules of `dashboards.queries.store` apply."""

from __future__ import annotations

from schemas.folded_rows import counted

SUM_ROWS = 200

OF_REBALANCE = """
SELECT * FROM verdicts
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation AND generation_id = $generation
LIMIT $cap
"""

OF_EPISODE = f"""
SELECT verdict, {counted()} AS rebalances, sum(lost_resource_seconds) AS lost
FROM verdicts
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
  AND generation_id BETWEEN $first AND $last
GROUP BY verdict
ORDER BY lost DESC, rebalances DESC, verdict LIMIT $cap
"""  # noqa: S608 - our own names

OF_GROUP = f"""
WITH judged AS (
    SELECT verdict, cause, {counted()} AS rebalances, sum(lost_resource_seconds_min) AS lost_min,
           sum(lost_resource_seconds) AS lost, sum(lost_resource_seconds_max) AS lost_max,
           {counted("evidence = 'observed'")} AS observed
    FROM verdicts
    WHERE cluster = $cluster AND group_id = $group AND joined_at >= $start AND joined_at < $end
    GROUP BY verdict, cause
), compared AS (
    SELECT *, sum(lost) OVER (PARTITION BY verdict) AS lost_by_verdict FROM judged
)
SELECT * FROM compared ORDER BY lost_by_verdict DESC, verdict, lost DESC, rebalances DESC, cause LIMIT $cap
"""  # noqa: S608 - our own names

OF_FLEET = """
WITH judged AS (
    SELECT verdict, cause, CAST(sum(rebalances) AS BIGINT) AS rebalances, count(*) AS groups, sum(lost_min) AS lost_min,
           sum(lost) AS lost, sum(lost_max) AS lost_max, CAST(sum(observed) AS BIGINT) AS observed
    FROM verdict_sums GROUP BY verdict, cause
), compared AS (
    SELECT *, sum(lost) OVER (PARTITION BY verdict) AS lost_by_verdict FROM judged
)
SELECT * FROM compared ORDER BY lost_by_verdict DESC, verdict, lost DESC, rebalances DESC, cause LIMIT $cap
"""
