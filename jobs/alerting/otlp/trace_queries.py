"""The SQL of traces. Ids and timestamps are always bound parameters."""

COMPLETED = """
SELECT cluster, group_id, incarnation, generation_id, joined_at, outcome, group_type, group_protocol, assignor,
       rebalance_mode, member_count, prepared_at, prepared_at_earliest, prepared_at_latest, synced_at, completed_at,
       trigger, trigger_evidence, resources_assigned, resources_moved, evidence, folded_count, last_completed_at
FROM generations
WHERE cluster = $cluster AND completed_at >= $start AND completed_at < $until
ORDER BY completed_at, group_id, incarnation, generation_id LIMIT $cap
"""
PASSED = """
SELECT count(*) AS found FROM generations
WHERE cluster = $cluster AND completed_at >= $start AND completed_at < $until LIMIT $cap
"""
OF_GENERATION = "concat_ws('/', incarnation, {generation}, group_id) IN (SELECT unnest($keys))"
MEMBERS = f"""
SELECT group_id, incarnation, generation_id, member_id, group_instance_id, client_id, is_leader, rejoined_at_earliest,
       rejoined_at_latest, reconciled_at
FROM generation_members
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) AND {OF_GENERATION.format(generation="generation_id")}
LIMIT $cap
"""  # noqa: S608 - our own names
RESUMED = f"""
SELECT group_id, incarnation, resumed_generation_id AS generation_id, count(*) AS stops,
       CAST(sum(stopped_ms) AS BIGINT) AS stopped_ms, max(resumed_at_earliest) AS resumed_at_earliest,
       max(resumed_at_latest) AS resumed_at_latest
FROM stalls
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups))
  AND {OF_GENERATION.format(generation="resumed_generation_id")}
GROUP BY group_id, incarnation, resumed_generation_id LIMIT $cap
"""  # noqa: S608 - our own names
DEPLOYS = """
SELECT cluster, group_id, started_at, text, evidence, ended_at FROM deploys
WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) AND started_at >= $start AND started_at <= $until
LIMIT $cap
"""
STORMS = """
SELECT cluster, storm_id, scope, started_at, ended_at, is_open, groups, group_ids, rebalances, suspected_cause,
       lost_resource_seconds, evidence
FROM storms WHERE cluster = $cluster AND (is_open OR ended_at >= $start)
ORDER BY started_at DESC, storm_id DESC LIMIT $cap
"""
