"""SQL on the patterns of groups, for `dashboards.queries.store`. The rules are there.

A day without a pattern has no row, so the newest analysis of a group is that of its diagnoses.
"""

from __future__ import annotations

from dashboards.queries.fleet_queries import SHORT

PATTERN_ROWS = 200
LASTING_ROWS = 20

OF_GROUP = """
WITH analyzed AS (
    SELECT max(as_of) AS as_of FROM diagnoses WHERE cluster = $cluster AND group_id = $group
      AND as_of < date_trunc('day', CAST($end AS TIMESTAMPTZ)) + INTERVAL 1 DAY
)
SELECT patterns.* FROM patterns JOIN analyzed USING (as_of)
WHERE cluster = $cluster AND group_id = $group AND (ended_at IS NULL OR last_at >= $start)
ORDER BY ended_at IS NOT NULL, started_at, pattern, subject LIMIT $cap
"""

LASTING = f"""
WITH lasting AS (
    SELECT cluster, group_id, as_of, pattern, subject, started_at, last_at, instances, evidence FROM patterns
    WHERE ended_at IS NULL AND started_at < $end AND contains(lower(group_id), lower($q))
      -- These end only with another record; the others are series of events.
      AND (last_at >= $start OR pattern IN
           ('topic_without_owner', 'group_id_shared', 'registry_without_leader', 'migration_incomplete'))
), analyzed AS (
    SELECT d.cluster, d.group_id, max(d.as_of) AS as_of FROM diagnoses AS d
    JOIN (SELECT DISTINCT cluster, group_id FROM lasting) AS named USING (cluster, group_id)
    GROUP BY d.cluster, d.group_id
)
SELECT cluster, {SHORT} AS group_id, pattern, subject, started_at, last_at, instances, evidence
FROM lasting JOIN analyzed USING (cluster, group_id, as_of)
ORDER BY started_at DESC, cluster, group_id, pattern, subject LIMIT $cap
"""  # noqa: S608 - our own names
