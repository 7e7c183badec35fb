"""SQL on losses by verdict and cause, for `dashboards.queries.causes`. Rules: see `dashboards.queries.store`."""

from __future__ import annotations

from dashboards.lake.sums import HASHED
from dashboards.queries.fleet_queries import SHORT
from dashboards.queries.verdict_queries import OF_FLEET
from schemas.folded_rows import counted

IN_WINDOW = "joined_at >= $start AND joined_at < $end"
GENERATION = "hash(cluster, group_id, incarnation, generation_id)"

KEYS = {
    "": ("verdict", "cause"),
    "cluster": ("cluster",),
    "team": ("team",),
    "group": ("cluster", "group_id", "team"),
}
"""Columns that name a row of each split."""


def named(team: str, condition: str) -> str:
    """Return the CTE of the groups in question: `hashed`, `cluster`, `group_id` (short) and `team`."""
    return f"""named AS (
    SELECT * FROM (SELECT {HASHED} AS hashed, cluster, {SHORT} AS group_id, {team} AS team FROM groups) AS labelled
    WHERE {condition}
)"""  # noqa: S608 - our own names


def sums(split: str, team: str, condition: str, judged: str, chosen: str) -> str:
    """Return the query of the sums by `split`, the greatest loss first.

    `condition` limits groups, `judged` verdicts, and `chosen` the rows of the result. Every row has its most costly
    verdict and cause (`lost_mostly`).
    """
    keys, more = ", ".join(KEYS[split]), ", verdict, cause" if split else ""
    return f"""
WITH {named(team, condition)}, parts AS (
    SELECT {keys}{more}, CAST(sum(rebalances) AS BIGINT) AS rebalances, CAST(sum(observed) AS BIGINT) AS observed,
           sum(lost_min) AS lost_min, sum(lost) AS lost, sum(lost_max) AS lost_max
    FROM verdict_sums JOIN named USING (hashed) WHERE {judged} GROUP BY {keys}{more}
), whole AS (
    SELECT {keys}, CAST(sum(rebalances) AS BIGINT) AS rebalances, CAST(sum(observed) AS BIGINT) AS observed,
           sum(lost_min) AS lost_min, sum(lost) AS lost, sum(lost_max) AS lost_max,
           max_by(verdict, lost) AS main_verdict, max_by(cause, lost) AS main_cause, max(lost) AS lost_mostly
    FROM parts GROUP BY {keys}
)
SELECT *, count(*) OVER () AS total FROM whole WHERE {chosen}
ORDER BY lost DESC, rebalances DESC, {keys} LIMIT $cap
"""  # noqa: S608 - our own names


def fleet_verdicts(team: str, condition: str) -> str:
    """Return `verdict_queries.OF_FLEET` of groups with a condition."""
    scoped = OF_FLEET.replace("FROM verdict_sums", "FROM verdict_sums JOIN named USING (hashed)")
    return scoped.replace("WITH judged", f"WITH {named(team, condition)}, judged", 1)


def over_time(team: str, condition: str, of_groups: str, judged: str) -> str:
    """Return the query of the loss by slot of time and verdict. `of_groups` limits rows by their group."""
    return f"""
WITH {named(team, condition)}
SELECT CAST(floor((epoch_ms(joined_at) - $origin) / $slot) AS BIGINT) AS slot, verdict,
       sum(lost_resource_seconds) AS lost, {counted()} AS rebalances
FROM verdicts WHERE {IN_WINDOW} AND {of_groups} AND {judged}
GROUP BY 1, 2 LIMIT $cap
"""  # noqa: S608 - our own names


def pending(of_groups: str, *, has_verdicts: bool) -> str:
    """Return the CTE `made` of the completed rebalances of the window that have no verdict yet."""
    judged = f"SELECT {GENERATION} AS id FROM verdicts WHERE {IN_WINDOW}"  # noqa: S608 - our own names
    kept = f"LEFT JOIN ({judged}) AS judged USING (id) WHERE judged.id IS NULL" if has_verdicts else ""
    return f"""completed AS (
    SELECT {GENERATION} AS id, {HASHED} AS hashed, {GENERATION_COLUMNS}
    FROM generations WHERE {IN_WINDOW} AND completed_at IS NOT NULL AND {of_groups}
), made AS (
    SELECT completed.* FROM completed {kept}
)"""  # noqa: S608 - our own names


GENERATION_COLUMNS = "cluster, group_id, incarnation, generation_id, source_offset, joined_at, folded_count"


def first_pending(team: str, condition: str, of_groups: str, *, has_verdicts: bool) -> str:
    """Return the query of the number of these rebalances, and of the first one's time."""
    return f"""
WITH {named(team, condition)}, {pending(of_groups, has_verdicts=has_verdicts)}
SELECT {counted()} AS rebalances, min(joined_at) AS first_at FROM made LIMIT $cap
"""  # noqa: S608 - our own names


def pending_sums(split: str, team: str, condition: str, of_groups: str, *, has_verdicts: bool) -> str:
    """Return the query of their number and loss: by slot of time, or by the columns of a split."""
    keys = "slot" if split == "slot" else ", ".join(KEYS[split])
    slot = "CAST(floor((epoch_ms(joined_at) - $origin) / $slot) AS BIGINT) AS slot" if split == "slot" else "0 AS slot"
    return f"""
WITH {named(team, condition)}, {pending(of_groups, has_verdicts=has_verdicts)}, stopped AS (
    SELECT made.id, sum(stopped_ms) / 1000 AS lost
    FROM stalls JOIN made USING (cluster, group_id, incarnation, generation_id)
    WHERE cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
      AND (cause <> 'static_restart' OR stopped_by_offset = made.source_offset)
    GROUP BY made.id
), priced AS (
    SELECT made.hashed, {slot}, folded_count, coalesce(stopped.lost, 0) AS lost
    FROM made LEFT JOIN stopped USING (id)
)
SELECT {keys}, sum(lost) AS lost, {counted()} AS rebalances
FROM priced JOIN named USING (hashed) GROUP BY {keys} ORDER BY lost DESC, {keys} LIMIT $cap
"""  # noqa: S608 - our own names
