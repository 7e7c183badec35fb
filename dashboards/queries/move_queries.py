"""SQL on reassignments, for `dashboards.queries.store`. The rules are there."""

from __future__ import annotations

from schemas.folded_rows import counted

MOVE_ROWS = 500
MOVE_SAMPLES = 20_000

PROGRESS = """
SELECT moved.cluster, moved.topic, moved.partition, moved.started_at, sample.observed_at, sample.progress,
       sample.bytes_done, sample.bytes_total, sample.bytes_per_second
FROM reassignments moved
JOIN reassignment_samples sample ON sample.cluster = moved.cluster AND sample.topic = moved.topic
    AND sample.partition = moved.partition AND sample.observed_at >= moved.started_at
    AND sample.observed_at <= coalesce(moved.completed_at, moved.last_observed_at)
WHERE moved.started_at < $end AND coalesce(moved.completed_at, moved.last_observed_at) >= $start
  AND sample.progress IS NOT NULL
ORDER BY moved.started_at DESC, moved.cluster, moved.topic, moved.partition, sample.observed_at
LIMIT $cap
"""

MOVES = """
SELECT *, coalesce(completed_at, last_observed_at) AS until_at FROM reassignments
WHERE started_at < $end AND coalesce(completed_at, last_observed_at) >= $start
ORDER BY completed_at IS NOT NULL, started_at DESC, cluster, topic, partition
LIMIT $cap
"""

MET = f"""
WITH moved AS (
    SELECT cluster, topic, partition, started_at, coalesce(completed_at, last_observed_at) AS until_at
    FROM reassignments WHERE started_at < $end AND coalesce(completed_at, last_observed_at) >= $start
), made AS (
    SELECT cluster, group_id, incarnation, generation_id, joined_at, source_partition, folded_count FROM generations
    WHERE joined_at >= $since AND joined_at <= $until
), rebalanced AS (
    SELECT moved.topic, moved.partition, moved.started_at, made.*
    FROM moved JOIN made ON made.cluster = moved.cluster
        AND made.joined_at >= moved.started_at AND made.joined_at <= moved.until_at
), met AS (
    SELECT DISTINCT rebalanced.* FROM rebalanced
    JOIN generation_members member ON member.cluster = rebalanced.cluster AND member.group_id = rebalanced.group_id
        AND member.incarnation = rebalanced.incarnation AND member.generation_id = rebalanced.generation_id
    WHERE member.valid_from_at >= $since
      AND (list_contains(list_transform(member.assigned, lambda r: r.name), rebalanced.topic)
           OR (rebalanced.topic = '__consumer_offsets' AND rebalanced.source_partition = rebalanced.partition))
)
SELECT cluster, topic, partition, started_at, list_sort(list(DISTINCT group_id)) AS groups, {counted()} AS rebalances
FROM met GROUP BY ALL LIMIT $cap
"""  # noqa: S608 - our own names
