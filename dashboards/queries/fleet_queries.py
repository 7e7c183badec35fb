"""SQL on many groups at once, for `dashboards.queries.store` and the search. The rules are in that module."""

from __future__ import annotations

from schemas.loss_interval import OF_STOPS, OF_SUM, OF_SUMS, ONE_STOP

SHORT_ID = 128
"""Characters of a group id that queries on many groups read."""

SHORT = f"""CASE WHEN length(group_id) > {SHORT_ID}
    THEN substr(group_id, 1, {SHORT_ID}) || '…' || substr(sha256(group_id), 1, 32) ELSE group_id END"""
"""A group's id, or for a longer id its beginning and its hash (`urlstate.group_hash`).

The shortened form is longer than `SHORT_ID` characters, so it cannot equal a complete id. It is needed because 100,000
ids of a kilobyte would fill the memory of the pages.
"""


HASHED = "hash(cluster, group_id)"
"""A group as 64 bits. Grouping the stops of a month by names and member ids would take more memory than the pages have.

Two of 100,000 groups have the same hash with a probability of 3e-10.
"""


def group_address(group_id: str) -> dict[str, str]:
    """Return the address parameters of a group given its `SHORT` id, for `State.href`."""
    return {"gid": group_id[-32:]} if len(group_id) > SHORT_ID else {"group": group_id}


FLEET = f"""
WITH ended AS (
    SELECT cluster, {SHORT} AS id, count(*) AS rebalances, max(joined_at) AS last_rebalance_at,
           quantile_cont(coalesce(rebalance_ms, rebalance_ms_min), 0.95) AS p95_min,
           quantile_cont(coalesce(rebalance_ms, rebalance_ms_max), 0.95) AS p95_max
    FROM generations WHERE joined_at >= $start AND joined_at < $end GROUP BY cluster, id
), stopped AS (
    SELECT {HASHED} AS hashed, {OF_STOPS}
    FROM stalls
    WHERE cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
      AND stopped_at_latest >= $start AND stopped_at_latest < $end
    GROUP BY hashed, hash({ONE_STOP})
), cost AS (
    SELECT hashed, {OF_SUM}
    FROM stopped GROUP BY hashed
), of_all AS (
    SELECT {OF_SUMS} FROM cost
), known AS (
    SELECT *, {SHORT} AS id, {HASHED} AS hashed FROM groups
    WHERE contains(lower(group_id), lower($q)) AND contains(lower(group_id), lower($named)) AND first_seen_at < $end
), listed AS (
    SELECT g.cluster, g.id AS group_id, g.state, g.state_since_at, g.group_protocol, g.assignor, g.member_count,
           g.evidence, g.open_rebalance_since_at, g.first_seen_at, g.last_record_at, g.is_deleted,
           coalesce(ended.rebalances, 0) AS rebalances, ended.p95_min, ended.p95_max, ended.last_rebalance_at,
           coalesce(cost.lost, 0) AS lost, coalesce(cost.lost_min, 0) AS lost_min,
           coalesce(cost.lost_max, 0) AS lost_max, coalesce(cost.lost_low, 0) AS lost_low,
           coalesce(cost.lost_high, 0) AS lost_high
    FROM known g LEFT JOIN ended USING (cluster, id) LEFT JOIN cost USING (hashed)
), sorted AS (
    SELECT *, count(*) OVER () AS total,
           CASE $order WHEN 'rebalances' THEN rebalances WHEN 'lost' THEN lost WHEN 'p95' THEN p95_max
               WHEN 'changed' THEN epoch_ms(greatest(state_since_at, last_rebalance_at)) END AS number,
           CASE $order WHEN 'group' THEN group_id WHEN 'cluster' THEN cluster WHEN 'state' THEN state END AS word
    FROM listed WHERE rebalances >= $least_rebalances AND lost >= $least_lost
)
SELECT *, (SELECT CAST(coalesce(sum(rebalances), 0) AS BIGINT) FROM ended) AS all_rebalances,
       (SELECT coalesce(lost_min, 0) FROM of_all) AS all_lost_min,
       (SELECT coalesce(lost, 0) FROM of_all) AS all_lost,
       (SELECT coalesce(lost_max, 0) FROM of_all) AS all_lost_max,
       (SELECT coalesce(lost_low, 0) FROM of_all) AS all_lost_low,
       (SELECT coalesce(lost_high, 0) FROM of_all) AS all_lost_high
FROM sorted
ORDER BY CASE WHEN $order = '' AND open_rebalance_since_at IS NOT NULL THEN 0 ELSE 1 END,
         number * $sign NULLS LAST, CASE WHEN $sign > 0 THEN word END, CASE WHEN $sign < 0 THEN word END DESC,
         lost DESC, rebalances DESC, cluster, group_id
LIMIT $cap OFFSET $skip
"""

TOTALS = f"""
WITH stopped AS (
    SELECT {OF_STOPS}
    FROM stalls
    WHERE cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
      AND stopped_at_latest >= $start AND stopped_at_latest < $end
    GROUP BY {HASHED}, hash({ONE_STOP})
), cost AS (
    SELECT {OF_SUM} FROM stopped
)
SELECT (SELECT count(*) FROM generations WHERE joined_at >= $start AND joined_at < $end) AS rebalances,
       coalesce(lost_min, 0) AS lost_min, coalesce(lost, 0) AS lost, coalesce(lost_max, 0) AS lost_max,
       coalesce(lost_low, 0) AS lost_low, coalesce(lost_high, 0) AS lost_high
FROM cost LIMIT $cap
"""

CELLS = f"""
SELECT cluster, {SHORT} AS group_id, CAST(floor((epoch_ms(joined_at) - $start_ms) / $bin_ms) AS INTEGER) AS bin,
       count(*) AS rebalances
FROM generations
WHERE joined_at >= $start AND joined_at < $end
  AND cluster || chr(10) || {SHORT} IN (SELECT unnest($groups))
GROUP BY ALL LIMIT $cap
"""

IDS = f"""
SELECT cluster, id AS group_id FROM (SELECT cluster, {SHORT} AS id FROM groups) named
ORDER BY length(id), cluster, id LIMIT $cap
"""
"""Short ids come first, because people type them and a response has a size limit (`query_cache.RESPONSE_BYTES`)."""
