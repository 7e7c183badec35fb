"""The cost of a storm for its groups, summed by DuckDB because a long storm of many groups has millions of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from schemas.folded_rows import counted
from schemas.loss_interval import OF_STOPS, OF_SUM, ONE_STOP, Loss, summed
from schemas.rows import GroupLossRow
from schemas.states import StallCause
from schemas.thresholds import HOUR_MS

COST = f"""
WITH hit AS (
    SELECT unnest($groups) AS group_id
), mine AS (
    SELECT *, coalesce(epoch_ms(prepared_at), epoch_ms(prepared_at_latest)) AS prepared_ms
    FROM generations
    WHERE cluster = $cluster AND group_id IN (FROM hit) AND epoch_ms(joined_at) BETWEEN $begin AND $end
), spans AS (
    SELECT group_id, greatest($begin, prepared_ms) AS start_ms,
           least($end, coalesce(epoch_ms(completed_at), $end)) AS end_ms
    FROM mine
), joined AS (
    SELECT group_id, start_ms, end_ms, max(end_ms) OVER (
        PARTITION BY group_id ORDER BY start_ms, end_ms ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS until_ms
    FROM spans
), lost AS (
    SELECT * FROM stalls
    WHERE cluster = $cluster AND group_id IN (FROM hit)
        AND stopped_ms IS NOT NULL AND cause <> '{StallCause.NO_MEMBER}'
        AND epoch_ms(stopped_at_latest) BETWEEN $begin - {HOUR_MS} AND $end + {HOUR_MS}
        AND (epoch_ms(stopped_at_latest) BETWEEN $begin AND $end
            OR (group_id, incarnation, generation_id) IN (SELECT (group_id, incarnation, generation_id) FROM mine))
), counted AS (
    SELECT group_id, {counted()} AS rebalances,
           sum(greatest(0, coalesce(unstable_ms - (epoch_ms(completed_at) - prepared_ms), 0))) AS folded_ms
    FROM mine GROUP BY group_id
), stopped AS (
    SELECT group_id, {OF_STOPS}
    FROM lost GROUP BY group_id, {ONE_STOP}
), summed AS (
    SELECT group_id, {OF_SUM}
    FROM stopped GROUP BY group_id
), under_way AS (
    SELECT group_id, sum(greatest(0, end_ms - greatest(start_ms, coalesce(until_ms, start_ms))))::BIGINT AS under_way
    FROM joined GROUP BY group_id
)
SELECT group_id, coalesce(rebalances, 0) AS rebalances, coalesce(lost_min, 0) AS lost_min, coalesce(lost, 0) AS lost,
       coalesce(lost_max, 0) AS lost_max, coalesce(lost_low, 0) AS lost_low, coalesce(lost_high, 0) AS lost_high,
       CAST(coalesce(under_way, 0) + coalesce(folded_ms, 0) AS BIGINT) AS under_way
FROM hit LEFT JOIN counted USING (group_id) LEFT JOIN summed USING (group_id) LEFT JOIN under_way USING (group_id)
ORDER BY lost DESC, rebalances DESC, group_id
"""  # noqa: S608 - our own names
"""Query over rows of `generations` and `stalls` around the time of a storm. It returns one row for each of the storm's
groups, greatest loss first: the number of rebalances that began between `begin` and `end`, resource-seconds lost in
these rebalances or in that time, and milliseconds during which a rebalance was in progress.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCost:
    """The cost of a storm for one group. Losses are in resource-seconds: `lost_min` and `lost_max` are hard bounds,
    `lost_low` and `lost_high` a 90 % interval. `under_way` is in milliseconds.
    """

    group_id: str
    rebalances: int
    lost_min: float
    lost: float
    lost_max: float
    lost_low: float
    lost_high: float
    under_way: int

    def row(self) -> GroupLossRow:
        """Return the element of `storms.by_group`, in resource-seconds."""
        return {
            "group_id": self.group_id,
            "rebalances": self.rebalances,
            "lost_resource_seconds_min": self.lost_min,
            "lost_resource_seconds": self.lost,
            "lost_resource_seconds_max": self.lost_max,
            "lost_resource_seconds_low": self.lost_low,
            "lost_resource_seconds_high": self.lost_high,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a storm of `length_ms`: its groups, greatest loss first, and their sums."""

    groups: Sequence[GroupCost]
    length_ms: int

    @property
    def rebalances(self) -> int:
        return sum(group.rebalances for group in self.groups)

    @property
    def lost_min(self) -> float:
        """Lower bound of the loss, in resource-seconds."""
        return fsum(group.lost_min for group in self.groups)

    @property
    def lost(self) -> float:
        """Best estimate of the loss, in resource-seconds."""
        return fsum(group.lost for group in self.groups)

    @property
    def lost_max(self) -> float:
        """Upper bound of the loss, in resource-seconds."""
        return fsum(group.lost_max for group in self.groups)

    @property
    def interval(self) -> Loss:
        """Return the loss in resource-seconds with its 90 % interval; groups are independent."""
        return summed((group.lost, group.lost_low, group.lost_high) for group in self.groups)

    @property
    def unstable(self) -> float:
        """Share of the storm's time (0 to 1) during which a rebalance was in progress, on average over its groups."""
        return sum(group.under_way for group in self.groups) / max(1, self.length_ms) / len(self.groups)
