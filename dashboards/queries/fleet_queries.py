"""SQL on many groups at once, for `dashboards.queries.store` and the search. The rules are in that module."""

from __future__ import annotations

from dashboards.lake.sums import HASHED
from schemas.folded_rows import counted
from schemas.loss_interval import OF_SUMS

SHORT_ID = 128
"""Characters of a group id that queries on many groups read."""

SHORT = f"""CASE WHEN length(group_id) > {SHORT_ID}
    THEN substr(group_id, 1, {SHORT_ID}) || '…' || substr(sha256(group_id), 1, 32) ELSE group_id END"""
"""A group's id, or for a longer id its beginning and its hash (`urlstate.group_hash`).

The shortened form is longer than `SHORT_ID` characters, so it cannot equal a complete id. It is needed because 100,000
ids of a kilobyte would fill the memory of the pages.
"""


def group_address(group_id: str) -> dict[str, str]:
    """Return the address parameters of a group given its `SHORT` id, for `State.href`."""
    return {"gid": group_id[-32:]} if len(group_id) > SHORT_ID else {"group": group_id}


STATE = ("state", "state_since_at", "group_protocol", "assignor", "member_count", "evidence",
         "open_rebalance_since_at", "first_seen_at", "last_record_at", "is_deleted")  # fmt: skip
LOST = ("lost", "lost_min", "lost_max", "lost_low", "lost_high")
ORDER = """CASE WHEN $order = '' AND open_rebalance_since_at IS NOT NULL THEN 0 ELSE 1 END,
         number * $sign NULLS LAST, CASE WHEN $sign > 0 THEN word END, CASE WHEN $sign < 0 THEN word END DESC,
         lost DESC, rebalances DESC, cluster, group_id"""

P95 = """quantile_cont(coalesce(rebalance_ms, rebalance_ms_min), 0.95) AS p95_min,
           quantile_cont(coalesce(rebalance_ms, rebalance_ms_max), 0.95) AS p95_max"""

MADE = f"""made AS (
    SELECT {HASHED} AS hashed, joined_at, rebalance_ms, rebalance_ms_min, rebalance_ms_max FROM generations
    WHERE joined_at >= $start AND joined_at < $end
), slow AS (
    -- Only this order needs the durations of all groups, which take as long as the rest.
    SELECT hashed, {P95} FROM made WHERE $order = 'p95' GROUP BY hashed
), """
TIMED = f""", timed AS (
    SELECT hashed, {P95} FROM made WHERE hashed IN (SELECT hashed FROM shown) GROUP BY hashed
)"""


def fleet_sql(condition: str = "true", *, has_durations: bool) -> str:
    """Return the query of the groups of the fleet with a condition on `cluster` and `group_id`.

    With durations, it has the 95th percentile of those shown (`p95_min`, `p95_max`).
    """
    made, timed = (MADE, TIMED) if has_durations else ("", "")
    slowest, of_slow = ("slow.p95_max", "LEFT JOIN slow USING (hashed)") if has_durations else ("0", "")
    p95, of_timed = (", p95_min, p95_max", "LEFT JOIN timed USING (hashed)") if has_durations else ("", "")
    return f"""
WITH {made}ended AS (
    SELECT * FROM group_rebalances
), cost AS (
    SELECT * FROM group_losses
), of_all AS (
    SELECT {OF_SUMS} FROM cost
), known AS (
    SELECT *, {SHORT} AS id, {HASHED} AS hashed FROM groups
    WHERE contains(lower(group_id), lower($q)) AND contains(lower(group_id), lower($named)) AND first_seen_at < $end
      AND {condition}
), listed AS (
    SELECT g.hashed, g.cluster, g.id AS group_id, {", ".join(f"g.{name}" for name in STATE)},
           coalesce(ended.rebalances, 0) AS rebalances, ended.last_rebalance_at, {slowest} AS slowest,
           {", ".join(f"coalesce(cost.{name}, 0) AS {name}" for name in LOST)}
    FROM known g LEFT JOIN ended USING (hashed) LEFT JOIN cost USING (hashed) {of_slow}
), sorted AS (
    SELECT *, count(*) OVER () AS total,
           CASE $order WHEN 'rebalances' THEN rebalances WHEN 'lost' THEN lost WHEN 'p95' THEN slowest
               WHEN 'changed' THEN epoch_ms(greatest(state_since_at, last_rebalance_at)) END AS number,
           CASE $order WHEN 'group' THEN group_id WHEN 'cluster' THEN cluster WHEN 'state' THEN state END AS word
    FROM listed WHERE rebalances >= $least_rebalances AND lost >= $least_lost
), shown AS (
    SELECT * FROM sorted ORDER BY {ORDER} LIMIT $cap OFFSET $skip
){timed}
SELECT shown.cluster, shown.group_id, {", ".join(f"shown.{name}" for name in STATE)}, shown.rebalances,
       shown.last_rebalance_at, {", ".join(f"shown.{name}" for name in LOST)}, shown.total{p95},
       (SELECT CAST(coalesce(sum(rebalances), 0) AS BIGINT) FROM ended) AS all_rebalances,
       {", ".join(f"(SELECT coalesce({name}, 0) FROM of_all) AS all_{name}" for name in LOST)}
FROM shown {of_timed}
ORDER BY {ORDER}
LIMIT $cap
"""


FLEET, FLEET_WITH_DURATIONS = fleet_sql(has_durations=False), fleet_sql(has_durations=True)

TOTALS = f"""
WITH cost AS (
    SELECT {OF_SUMS} FROM group_losses
)
SELECT (SELECT CAST(coalesce(sum(rebalances), 0) AS BIGINT) FROM group_rebalances) AS rebalances,
       coalesce(lost_min, 0) AS lost_min, coalesce(lost, 0) AS lost, coalesce(lost_max, 0) AS lost_max,
       coalesce(lost_low, 0) AS lost_low, coalesce(lost_high, 0) AS lost_high
FROM cost LIMIT $cap
"""


def totals_sql(condition: str) -> str:
    """Return the query of the totals of the groups with a condition on `cluster` and `group_id`."""
    return f"""
WITH chosen AS (
    SELECT {HASHED} AS hashed FROM groups WHERE {condition}
), cost AS (
    SELECT {OF_SUMS} FROM group_losses WHERE hashed IN (SELECT hashed FROM chosen)
)
SELECT (SELECT CAST(coalesce(sum(rebalances), 0) AS BIGINT) FROM group_rebalances
        WHERE hashed IN (SELECT hashed FROM chosen)) AS rebalances,
       coalesce(lost_min, 0) AS lost_min, coalesce(lost, 0) AS lost, coalesce(lost_max, 0) AS lost_max,
       coalesce(lost_low, 0) AS lost_low, coalesce(lost_high, 0) AS lost_high
FROM cost LIMIT $cap
"""


CELLS = f"""
SELECT cluster, {SHORT} AS group_id, CAST(floor((epoch_ms(joined_at) - $start_ms) / $bin_ms) AS INTEGER) AS bin,
       {counted()} AS rebalances, {counted("outcome IN ('completed', 'empty')")} AS completed
FROM generations
WHERE joined_at >= $start AND joined_at < $end
  AND cluster || chr(10) || {SHORT} IN (SELECT unnest($groups))
GROUP BY ALL LIMIT $cap
"""

LOST_CELLS = f"""
SELECT cluster, {SHORT} AS group_id, CAST(floor((epoch_ms(joined_at) - $start_ms) / $bin_ms) AS INTEGER) AS bin,
       {counted()} AS judged, sum(lost_resource_seconds) AS lost
FROM verdicts
WHERE joined_at >= $start AND joined_at < $end
  AND cluster || chr(10) || {SHORT} IN (SELECT unnest($groups))
GROUP BY ALL LIMIT $cap
"""

IDS = f"""
SELECT cluster, id AS group_id FROM (SELECT cluster, {SHORT} AS id FROM groups) named
ORDER BY length(id), cluster, id LIMIT $cap
"""
"""Short ids come first, because people type them and a response has a size limit (`query_cache.RESPONSE_BYTES`)."""
