"""The SQL of alerts. Ids and timestamps are always bound parameters."""

from schemas.loss_interval import OF_SUM, ONE_STOP

BUILT_CLUSTERS = "SELECT DISTINCT cluster FROM groups LIMIT $cap"

BUILT = "SELECT max(last_record_at) AS until_at FROM groups WHERE cluster = $cluster LIMIT $cap"
STORMS = "SELECT * FROM storms WHERE cluster = $cluster AND is_open LIMIT $cap"
PATTERNS = "SELECT * FROM cluster_patterns WHERE cluster = $cluster AND ended_at IS NULL LIMIT $cap"
REBALANCING = """
SELECT * FROM groups WHERE cluster = $cluster AND open_rebalance_since_at IS NOT NULL LIMIT $cap
"""
FLAPPING = """
SELECT * FROM group_health WHERE cluster = $cluster AND flapping_members > 0 AND hour_at >= $start LIMIT $cap
"""
DEPARTURES = """
SELECT group_id, date_trunc('hour', event_at) AS hour_at, evidence, count(*) AS times,
       coalesce(nullif(group_instance_id, ''), nullif(client_id, ''), member_id) AS instance
FROM group_events
WHERE cluster = $cluster AND event_at >= $start AND kind IN ('left', 'session_expired', 'poll_timeout', 'fenced')
  AND group_id IN (SELECT unnest($groups))
GROUP BY ALL ORDER BY group_id, instance, hour_at, evidence
LIMIT $cap
"""
UNOWNED = """
SELECT * FROM patterns WHERE cluster = $cluster AND pattern = 'topic_without_owner' AND ended_at IS NULL
QUALIFY row_number() OVER (PARTITION BY group_id, subject ORDER BY as_of DESC) = 1 LIMIT $cap
"""
ANALYZED = """
SELECT group_id, max(as_of) AS as_of FROM diagnoses
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) GROUP BY group_id LIMIT $cap
"""
LAST_JOINED = """
SELECT group_id, max(joined_at) AS joined_at FROM generations
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) GROUP BY group_id LIMIT $cap
"""
ONCE_OWNED = """
SELECT DISTINCT group_id, name FROM stalls
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) LIMIT $cap
"""
STALLED = "SELECT * FROM reassignments WHERE cluster = $cluster AND state = 'stalled' LIMIT $cap"
CAUSES = """
SELECT * FROM diagnoses WHERE cluster = $cluster AND as_of >= $start AND group_id IN (SELECT unnest($groups))
QUALIFY row_number() OVER (PARTITION BY group_id ORDER BY as_of DESC, is_normal, rank) = 1 LIMIT $cap
"""
LOST = f"""
WITH ended AS (
    SELECT group_id, {ONE_STOP}, epoch_ms(resumed_at_earliest) AS ended, stopped_ms, stopped_ms_min,
           epoch_ms(resumed_at_latest) AS ended_max, stopped_ms_max
    FROM stalls
    WHERE cluster = $cluster AND cause <> 'no_member' AND resumed_at_earliest IS NOT NULL AND stopped_ms IS NOT NULL
      AND resumed_at_earliest > $start
), burning AS (
    SELECT group_id FROM ended GROUP BY group_id HAVING sum(stopped_ms) >= $least_ms
), within AS (
    SELECT group_id, {ONE_STOP}, width, greatest(ended - stopped_ms, $until_ms - width) AS began,
           greatest(0, least(ended, $until_ms) - began) AS lost,
           greatest(0, least(ended, $until_ms) - greatest(ended - stopped_ms_min, $until_ms - width)) AS least_lost,
           greatest(0, least(ended_max, $until_ms) - greatest(ended_max - stopped_ms_max, $until_ms - width))
               AS most_lost
    FROM ended, (SELECT unnest(string_split($widths, ',')::BIGINT[]) AS width) AS windows
    WHERE ended > $until_ms - width AND group_id IN (FROM burning)
), stopped AS (
    SELECT group_id, width, sum(lost)::DOUBLE AS estimate_ms, sum(least(lost, least_lost))::DOUBLE AS least_ms,
           sum(greatest(lost, most_lost))::DOUBLE AS most_ms, min(began) AS began
    FROM within GROUP BY group_id, width, {ONE_STOP}
)
SELECT group_id, width, {OF_SUM}, min(began) AS first_ms
FROM stopped GROUP BY group_id, width HAVING sum(estimate_ms) > 0 LIMIT $cap
"""  # noqa: S608 - our own names
OWNED = """
WITH handed AS (
    SELECT group_id, CASE WHEN is_empty THEN 0 ELSE resources_assigned END AS resources,
           epoch_ms(coalesce(synced_at, joined_at)) AS began,
           -- Spark refuses an alias of the same list within a window.
           lead(epoch_ms(coalesce(synced_at, joined_at)), 1, $until_ms)
               OVER (PARTITION BY group_id ORDER BY incarnation, generation_id) AS ended
    FROM generations
    WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) AND (is_empty OR resources_assigned IS NOT NULL)
), within AS (
    SELECT group_id, width, resources, greatest(0, least(ended, $until_ms) - greatest(began, $until_ms - width)) AS held
    FROM handed, (SELECT unnest(string_split($widths, ',')::BIGINT[]) AS width) AS windows
    WHERE resources > 0 AND ended > $until_ms - width
)
SELECT group_id, width, sum(resources * held)::DOUBLE / sum(held) AS resources
FROM within GROUP BY group_id, width HAVING sum(held) > 0 LIMIT $cap
"""
ALERTS = """
SELECT * FROM alerts
WHERE resolved_at IS NULL OR resolved_at >= $resolved OR started_at >= $started LIMIT $cap
"""
SUMS = """
SELECT cluster, sum(rebalances)::DOUBLE AS rebalances, sum(lost_resource_seconds) AS lost,
       sum(owned_resource_seconds) AS owned
FROM group_health GROUP BY cluster LIMIT $cap
"""
STATES = "SELECT cluster, state, count(*) AS found FROM groups WHERE NOT is_deleted GROUP BY ALL LIMIT $cap"
REASSIGNMENTS = """
SELECT cluster, state, count(*) AS found FROM reassignments WHERE completed_at IS NULL AND state IS NOT NULL
GROUP BY ALL LIMIT $cap
"""
MOST_LOST = """
WITH last_day AS (
    SELECT *, max(hour_at) OVER (PARTITION BY cluster) - INTERVAL 24 HOURS AS begins FROM group_health
), summed AS (
    SELECT cluster, group_id, sum(lost_resource_seconds) AS lost, sum(rebalances)::DOUBLE AS rebalances,
           max(flapping_members) AS flapping
    FROM last_day WHERE hour_at > begins GROUP BY cluster, group_id
)
SELECT * FROM summed QUALIFY row_number() OVER (PARTITION BY cluster ORDER BY lost DESC, group_id) <= $most
ORDER BY lost DESC LIMIT $cap
"""
