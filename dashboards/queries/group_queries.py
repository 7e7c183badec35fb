"""SQL on one group and one generation, for `dashboards.queries.store`. The rules are there."""

from __future__ import annotations

from schemas.loss_interval import OF_STOPS, OF_SUM, ONE_STOP

GROUP = "SELECT * FROM groups WHERE cluster = $cluster AND group_id = $group LIMIT $cap"

BY_HASH = """
SELECT cluster, group_id FROM groups
WHERE cluster = $cluster AND length(group_id) > 64 AND substr(sha256(group_id), 1, 32) = $gid LIMIT $cap
"""

BEFORE = """
SELECT max(joined_at) AS at FROM generations
WHERE cluster = $cluster AND group_id = $group AND joined_at >= $since AND joined_at < $start LIMIT $cap
"""

AFTER = """
SELECT min(joined_at) AS at FROM generations
WHERE cluster = $cluster AND group_id = $group AND joined_at >= $end LIMIT $cap
"""

GENERATIONS = f"""
WITH made AS (
    SELECT * FROM generations
    WHERE cluster = $cluster AND group_id = $group AND joined_at >= $since AND joined_at < $until
), stopped AS (
    -- No rebalance stopped a static member that rejoined during the generation.
    SELECT {ONE_STOP}, {OF_STOPS}, count(*) AS resources
    FROM stalls JOIN made USING (cluster, group_id, incarnation, generation_id)
    WHERE stalls.cluster = $cluster AND stalls.group_id = $group
      AND cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
      AND (cause <> 'static_restart' OR stopped_by_offset = made.source_offset)
    GROUP BY {ONE_STOP}
), cost AS (
    SELECT incarnation, generation_id, {OF_SUM}, CAST(sum(resources) AS BIGINT) AS stopped_resources
    FROM stopped GROUP BY incarnation, generation_id
)
SELECT g.*, CAST(sum(CASE WHEN g.joined_at >= $start AND g.joined_at < $end THEN coalesce(g.folded_count, 1) ELSE 0 END)
       OVER () AS BIGINT) AS window_generations, coalesce(cost.lost_min, 0) AS lost_min, coalesce(cost.lost, 0) AS lost,
       coalesce(cost.lost_max, 0) AS lost_max, coalesce(cost.lost_low, 0) AS lost_low,
       coalesce(cost.lost_high, 0) AS lost_high, coalesce(cost.stopped_resources, 0) AS stopped_resources
FROM made g LEFT JOIN cost USING (incarnation, generation_id)
WHERE least(g.joined_at, g.prepared_at_earliest) < $end
ORDER BY g.joined_at DESC, g.incarnation DESC, g.generation_id DESC
LIMIT $cap
"""  # noqa: S608 - our own names

MEMBERS = """
SELECT incarnation, generation_id, member_id, valid_from_at, valid_to_at, group_instance_id, client_id, client_host,
       is_leader, assigned, connect_delay_ms, rejoined_at_earliest, rejoined_at_latest
FROM generation_members
WHERE cluster = $cluster AND group_id = $group AND valid_from_at < $end
  AND (valid_to_at IS NULL OR valid_to_at >= $start)
ORDER BY valid_from_at DESC, member_id
LIMIT $cap
"""

MEMBERS_AT = """
SELECT * FROM generation_members
WHERE cluster = $cluster AND group_id = $group AND valid_from_at < $end
  AND (valid_to_at IS NULL OR valid_to_at >= $start)
ORDER BY member_id, valid_from_at
LIMIT $cap
"""

LIBRARY_ROWS = 20
LIBRARIES = """
SELECT client_library, client_library_evidence, count(DISTINCT member_id) AS members
FROM generation_members
WHERE cluster = $cluster AND group_id = $group AND valid_from_at < $end
  AND (valid_to_at IS NULL OR valid_to_at >= $start)
GROUP BY client_library, client_library_evidence
ORDER BY members DESC, client_library, client_library_evidence
LIMIT $cap
"""

STALLS = """
SELECT * FROM stalls
WHERE cluster = $cluster AND group_id = $group AND stopped_at_earliest < $end
  AND (resumed_at_latest IS NULL OR resumed_at_latest >= $start)
ORDER BY stopped_at_latest DESC, name, index
LIMIT $cap
"""

LINE_ROWS = 200
LINES = """
SELECT * FROM coordinator_events
WHERE cluster = $cluster AND group_id = $group AND event_at >= $start AND event_at < $end
ORDER BY event_at DESC, source_id, line_no
LIMIT $cap
"""

EVENTS = """
SELECT * FROM group_events
WHERE cluster = $cluster AND group_id = $group AND event_at >= $start AND event_at < $end
ORDER BY event_at DESC, kind, member_id
LIMIT $cap
"""

HAS_GAPS = "SELECT cluster FROM coverage WHERE cluster = $cluster AND is_gap LIMIT $cap"

GAPS = """
WITH spans AS (SELECT * FROM coverage WHERE cluster = $cluster AND source = '__consumer_offsets'),
gaps AS (
    SELECT gap_reason, coalesce((SELECT max(to_at) FROM spans s WHERE NOT s.is_gap
            AND s.source_partition = g.source_partition
            AND (s.log_epoch, s.to_offset) <= (g.log_epoch, g.from_offset)), $start) AS from_at,
        coalesce((SELECT min(from_at) FROM spans s WHERE NOT s.is_gap AND s.source_partition = g.source_partition
            AND (s.log_epoch, s.from_offset) >= (g.log_epoch, g.to_offset)), $end) AS to_at
    FROM spans g
    WHERE is_gap AND source_partition IN (SELECT source_partition FROM generations
                                          WHERE cluster = $cluster AND group_id = $group)
)
SELECT * FROM gaps WHERE from_at < $end AND to_at > $start ORDER BY from_at LIMIT $cap
"""

ADJACENT = """
WITH made AS (
    SELECT generation_id, last_generation_id FROM generations
    WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
), chosen AS (
    -- The row of the generation, which may be folded with others.
    SELECT max(generation_id) AS id FROM made
    WHERE generation_id <= $generation AND coalesce(last_generation_id, generation_id) >= $generation
)
SELECT id AS generation, max(generation_id) FILTER (WHERE generation_id < id) AS previous,
       min(generation_id) FILTER (WHERE generation_id > id) AS following
FROM made, chosen WHERE id IS NOT NULL GROUP BY id LIMIT $cap
"""

NEIGHBOURS = """
SELECT * FROM generations
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
  AND generation_id IN ($previous, $generation, $following)
ORDER BY generation_id
LIMIT $cap
"""

GENERATION_MEMBERS = """
SELECT * FROM generation_members
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
  AND generation_id IN ($generation, $previous)
ORDER BY generation_id, member_id
LIMIT $cap
"""

GENERATION_STALLS = """
SELECT * FROM stalls
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation AND generation_id = $generation
ORDER BY name, index, stopped_by_offset
LIMIT $cap
"""

GENERATION_EVENTS = """
SELECT * FROM group_events
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation AND generation_id = $generation
ORDER BY event_at, kind, member_id
LIMIT $cap
"""

EPISODE = """
SELECT * FROM rebalances
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
  AND first_generation_id <= $generation AND last_generation_id >= $generation
LIMIT $cap
"""
