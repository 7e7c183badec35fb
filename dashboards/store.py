"""Every question the pages ask of silver; with `dashboards.gold_store` the only SQL. Ids are bound parameters only.

Instants are epoch milliseconds in and out. A table that is not there yet gives no rows. *Lost* counts stalls that ended
and that were not `no_member`, by the time they were known to have stopped (`stopped_at_latest`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.diagnosis_queries import DIAGNOSIS_ROWS, NEWEST, OF_WINDOW
from dashboards.gold_store import within
from dashboards.lag_store import LagStore
from dashboards.lake import Parameter, Row, Rows
from dashboards.urlstate import Window
from schemas.silver import SILVER
from schemas.states import StallCause

FLEET_ROWS = 500
GENERATION_ROWS = 500
MEMBER_ROWS = 20_000
STALL_ROWS = 5_000
EVENT_ROWS = 2_000
CELL_ROWS = 20_000
MOVE_ROWS = 500
MOVE_SAMPLES = 20_000

SPAN = """
SELECT min(first_seen_at) AS first_at, max(last_record_at) AS last_at, count(*) AS groups,
       count(*) FILTER (WHERE open_rebalance_since_at IS NOT NULL OR state IN
           ('PreparingRebalance', 'CompletingRebalance', 'Assigning', 'Reconciling')) AS rebalancing,
       count(*) FILTER (WHERE state = 'Unknown') AS unknown
FROM groups LIMIT $cap
"""

COVERED = "SELECT max(to_at) AS last_at FROM coverage WHERE NOT is_gap AND source <> 'poll' LIMIT $cap"

TOTALS = """
SELECT (SELECT count(*) FROM generations WHERE joined_at >= $start AND joined_at < $end) AS rebalances,
       coalesce(sum(stopped_ms_min), 0) / 1000 AS lost_min,
       coalesce(sum(stopped_ms), 0) / 1000 AS lost,
       coalesce(sum(stopped_ms_max), 0) / 1000 AS lost_max
FROM stalls
WHERE cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
  AND stopped_at_latest >= $start AND stopped_at_latest < $end
LIMIT $cap
"""

FLEET = """
WITH ended AS (
    SELECT cluster, group_id, count(*) AS rebalances, max(joined_at) AS last_rebalance_at,
           percentile_cont(0.95) WITHIN GROUP (ORDER BY coalesce(rebalance_ms, rebalance_ms_min)) AS p95_min,
           percentile_cont(0.95) WITHIN GROUP (ORDER BY coalesce(rebalance_ms, rebalance_ms_max)) AS p95_max
    FROM generations WHERE joined_at >= $start AND joined_at < $end GROUP BY cluster, group_id
), cost AS (
    SELECT cluster, group_id, sum(stopped_ms_min) / 1000 AS lost_min, sum(stopped_ms) / 1000 AS lost,
           sum(stopped_ms_max) / 1000 AS lost_max
    FROM stalls
    WHERE cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
      AND stopped_at_latest >= $start AND stopped_at_latest < $end
    GROUP BY cluster, group_id
)
SELECT g.cluster, g.group_id, g.state, g.state_since_at, g.group_protocol, g.assignor, g.member_count, g.evidence,
       g.open_rebalance_since_at, g.first_seen_at, g.last_record_at, g.is_deleted,
       coalesce(ended.rebalances, 0) AS rebalances, ended.p95_min, ended.p95_max, ended.last_rebalance_at,
       coalesce(cost.lost, 0) AS lost, coalesce(cost.lost_min, 0) AS lost_min, coalesce(cost.lost_max, 0) AS lost_max
FROM groups g LEFT JOIN ended USING (cluster, group_id) LEFT JOIN cost USING (cluster, group_id)
WHERE contains(lower(g.group_id), lower($q)) AND g.first_seen_at < $end
ORDER BY g.open_rebalance_since_at IS NULL, lost DESC, rebalances DESC, g.cluster, g.group_id
LIMIT $cap
"""

CELLS = """
SELECT cluster, group_id, CAST(floor((epoch_ms(joined_at) - $start_ms) / $bin_ms) AS INTEGER) AS bin,
       count(*) AS rebalances
FROM generations
WHERE joined_at >= $start AND joined_at < $end
  AND (cluster, group_id) IN (SELECT (unnest($clusters), unnest($groups)))
GROUP BY ALL LIMIT $cap
"""

GROUP = "SELECT * FROM groups WHERE cluster = $cluster AND group_id = $group LIMIT $cap"

BY_HASH = """
SELECT cluster, group_id FROM groups
WHERE cluster = $cluster AND length(group_id) > 64 AND substr(sha256(group_id), 1, 32) = $gid LIMIT $cap
"""

GENERATIONS = """
WITH cost AS (
    -- A static member that comes back while the generation holds was stopped by no rebalance.
    SELECT incarnation, generation_id, sum(stopped_ms_min) / 1000 AS lost_min, sum(stopped_ms) / 1000 AS lost,
           sum(stopped_ms_max) / 1000 AS lost_max, count(*) AS stopped_resources
    FROM stalls JOIN generations made USING (cluster, group_id, incarnation, generation_id)
    WHERE cluster = $cluster AND group_id = $group AND cause <> 'no_member' AND resumed_at_earliest IS NOT NULL
      AND (cause <> 'static_restart' OR stopped_by_offset = made.source_offset)
    GROUP BY incarnation, generation_id
)
SELECT g.*, coalesce(cost.lost_min, 0) AS lost_min, coalesce(cost.lost, 0) AS lost,
       coalesce(cost.lost_max, 0) AS lost_max, coalesce(cost.stopped_resources, 0) AS stopped_resources
FROM generations g LEFT JOIN cost USING (incarnation, generation_id)
WHERE g.cluster = $cluster AND g.group_id = $group AND least(g.joined_at, g.prepared_at_earliest) < $end
  AND g.joined_at >= coalesce((SELECT max(joined_at) FROM generations
                               WHERE cluster = $cluster AND group_id = $group AND joined_at < $start), $start)
ORDER BY g.joined_at DESC, g.incarnation DESC, g.generation_id DESC
LIMIT $cap
"""

MEMBERS = """
SELECT incarnation, generation_id, member_id, valid_from_at, valid_to_at, group_instance_id, client_id, client_host,
       is_leader, assigned, connect_delay_ms, rejoined_at_earliest, rejoined_at_latest
FROM generation_members
WHERE cluster = $cluster AND group_id = $group AND valid_from_at < $end
  AND (valid_to_at IS NULL OR valid_to_at >= $start)
ORDER BY valid_from_at DESC, member_id
LIMIT $cap
"""

STALLS = """
SELECT * FROM stalls
WHERE cluster = $cluster AND group_id = $group AND stopped_at_earliest < $end
  AND (resumed_at_latest IS NULL OR resumed_at_latest >= $start)
ORDER BY stopped_at_latest DESC, name, index
LIMIT $cap
"""

EVENTS = """
SELECT * FROM group_events
WHERE cluster = $cluster AND group_id = $group AND event_at >= $start AND event_at < $end
ORDER BY event_at DESC, kind, member_id
LIMIT $cap
"""

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

NEIGHBOURS = """
SELECT * FROM generations
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
  AND generation_id >= coalesce((SELECT max(generation_id) FROM generations
                                 WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
                                   AND generation_id < $generation), $generation)
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

REASSIGNMENTS = """
WITH moved AS (
    SELECT *, coalesce(completed_at, last_observed_at) AS until_at FROM reassignments
    WHERE started_at < $end AND coalesce(completed_at, last_observed_at) >= $start
), met AS (
    SELECT moved.cluster, moved.topic, moved.partition, moved.started_at,
           list(DISTINCT made.group_id ORDER BY made.group_id) AS groups,
           count(DISTINCT (made.group_id, made.incarnation, made.generation_id)) AS rebalances
    FROM moved
    JOIN generations made ON made.cluster = moved.cluster
        AND made.joined_at >= moved.started_at AND made.joined_at <= moved.until_at
    JOIN generation_members member ON member.cluster = made.cluster AND member.group_id = made.group_id
        AND member.incarnation = made.incarnation AND member.generation_id = made.generation_id
    WHERE list_contains([r.name for r in member.assigned], moved.topic)
       OR (moved.topic = '__consumer_offsets' AND made.source_partition = moved.partition)
    GROUP BY ALL
)
SELECT moved.*, coalesce(met.groups, []) AS groups, coalesce(met.rebalances, 0) AS rebalances
FROM moved LEFT JOIN met USING (cluster, topic, partition, started_at)
ORDER BY moved.completed_at IS NOT NULL, moved.started_at DESC, moved.cluster, moved.topic, moved.partition
LIMIT $cap
"""

EPISODE = """
SELECT * FROM rebalances
WHERE cluster = $cluster AND group_id = $group AND incarnation = $incarnation
  AND first_generation_id <= $generation AND last_generation_id >= $generation
LIMIT $cap
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What the tables hold. `last_at` is the newest record known."""

    first_at: int
    last_at: int
    groups: int
    rebalancing: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One generation with its surroundings. `previous` and `following` are None at the ends of an incarnation."""

    generation: Row
    previous: Row | None
    following: Row | None
    members: list[Row]
    previous_members: list[Row]
    stalls: Rows
    events: list[Row]
    episode: Row | None

    @property
    def named(self) -> list[Row]:
        """Every row that tells who a member is."""
        return [*self.previous_members, *self.members, *self.events]

    @property
    def stopped(self) -> list[Row]:
        """Stalls that this rebalance made; not those of static members that came back while its generation held."""
        return [s for s in self.stalls.rows if not self._is_later(s)]

    @property
    def restarted(self) -> list[Row]:
        """Stalls of static members that came back while its generation held: no rebalance stopped them."""
        return [s for s in self.stalls.rows if self._is_later(s)]

    def _is_later(self, stall: Row) -> bool:
        by_other = stall["stopped_by_offset"] != self.generation["source_offset"]
        return by_other and bool(stall["cause"] == StallCause.STATIC_RESTART)


class Store(LagStore):
    """Answers of one warehouse."""

    @property
    def is_ready(self) -> bool:
        """Every table the pages read is there."""
        versions = self.versions()
        return all(table.name in versions for table in SILVER)

    def span(self) -> Span | None:
        """None while nothing has been observed."""
        rows = self._ask(SPAN, ("groups",), 1)
        if not rows or rows[0]["first_at"] is None or rows[0]["last_at"] is None:
            return None
        covered = self._ask(COVERED, ("coverage",), 1)
        last = max(r["last_at"] for r in (*rows, *covered) if r["last_at"] is not None)
        return Span(**rows[0] | {"last_at": last})

    def totals(self, window: Window) -> Row:
        """`rebalances`, `lost`, `lost_min`, `lost_max` (resource-seconds) of all groups."""
        rows = self._ask(TOTALS, ("generations", "stalls"), 1, **within(window))
        return rows[0] if rows else {"rebalances": 0, "lost": 0, "lost_min": 0, "lost_max": 0}

    def fleet(self, window: Window, q: str = "") -> Rows:
        """Groups whose id contains `q`, worst first: those that rebalance now, then by what was lost."""
        return self._lake.query(FLEET, ("groups", "generations", "stalls"), FLEET_ROWS, {"q": q, **within(window)})

    def cells(self, window: Window, bins: int, groups: Sequence[tuple[str, str]]) -> list[Row]:
        """Rebalances per group and bin: `cluster`, `group_id`, `bin`, `rebalances`."""
        return self._ask(
            CELLS,
            ("generations",),
            CELL_ROWS,
            start_ms=window.start,
            bin_ms=max(1, -(-window.width // bins)),
            clusters=[cluster for cluster, _ in groups],
            groups=[group for _, group in groups],
            **within(window),
        )

    def reassignments(self, window: Window) -> Rows:
        """Reassignments under way in the window, those that run first; `groups` and `rebalances`: generations of groups
        that consume the topic, or are coordinated by the partition, made while it ran.
        """
        tables = ("reassignments", "generations", "generation_members")
        return self._lake.query(REASSIGNMENTS, tables, MOVE_ROWS, within(window))

    def progress(self, window: Window) -> Rows:
        """What polls saw of the reassignments of the window: `observed_at`, `progress` 0..1, bytes; newest first."""
        return self._lake.query(PROGRESS, ("reassignments", "reassignment_samples"), MOVE_SAMPLES, within(window))

    def group(self, cluster: str, group: str) -> Row | None:
        rows = self._ask(GROUP, ("groups",), 1, cluster=cluster, group=group)
        return rows[0] if rows else None

    def group_by_hash(self, cluster: str, gid: str) -> str | None:
        """The id that `urlstate.group_hash` shortened."""
        rows = self._ask(BY_HASH, ("groups",), 1, cluster=cluster, gid=gid)
        return rows[0]["group_id"] if rows else None

    def generations(self, cluster: str, group: str, window: Window) -> Rows:
        """Newest first: those of the window and the one before it, with what each cost."""
        return self._of_group(GENERATIONS, ("generations", "stalls"), GENERATION_ROWS, cluster, group, window)

    def members(self, cluster: str, group: str, window: Window) -> Rows:
        return self._of_group(MEMBERS, ("generation_members",), MEMBER_ROWS, cluster, group, window)

    def stalls(self, cluster: str, group: str, window: Window) -> Rows:
        return self._of_group(STALLS, ("stalls",), STALL_ROWS, cluster, group, window)

    def events(self, cluster: str, group: str, window: Window) -> Rows:
        return self._of_group(EVENTS, ("group_events",), EVENT_ROWS, cluster, group, window)

    def diagnoses(self, q: str = "") -> Rows:
        """The newest diagnoses of groups whose id contains `q`, what cost most first."""
        return self._lake.query(NEWEST, ("diagnoses",), DIAGNOSIS_ROWS, {"q": q})

    def diagnosis(self, cluster: str, group: str, window: Window) -> list[Row]:
        """The diagnoses of the last day of the window on which the group rebalanced."""
        return self._of_group(OF_WINDOW, ("diagnoses",), DIAGNOSIS_ROWS, cluster, group, window).rows

    def gaps(self, cluster: str, group: str, window: Window) -> Rows:
        """Spans of the group's partition of the offsets topic that were not read: `from_at`, `to_at`, `gap_reason`."""
        return self._of_group(GAPS, ("coverage", "generations"), EVENT_ROWS, cluster, group, window)

    def rebalance(self, cluster: str, group: str, incarnation: int, generation: int) -> Rebalance | None:
        """None if there is no such generation."""
        key: dict[str, Parameter] = {
            "cluster": cluster,
            "group": group,
            "incarnation": incarnation,
            "generation": generation,
        }
        near = self._ask(NEIGHBOURS, ("generations",), 3, **key)
        at = next((i for i, row in enumerate(near) if row["generation_id"] == generation), None)
        if at is None:
            return None
        previous = near[at - 1] if at else None
        before = previous["generation_id"] if previous else generation
        members = self._ask(GENERATION_MEMBERS, ("generation_members",), MEMBER_ROWS, previous=before, **key)
        return Rebalance(
            generation=near[at],
            previous=previous,
            following=near[at + 1] if at + 1 < len(near) else None,
            members=[m for m in members if m["generation_id"] == generation],
            previous_members=[m for m in members if m["generation_id"] != generation],
            stalls=self._lake.query(GENERATION_STALLS, ("stalls",), STALL_ROWS, key),
            events=self._ask(GENERATION_EVENTS, ("group_events",), EVENT_ROWS, **key),
            episode=next(iter(self._ask(EPISODE, ("rebalances",), 1, **key)), None),
        )

    def _of_group(self, sql: str, tables: Sequence[str], cap: int, cluster: str, group: str, window: Window) -> Rows:
        return self._lake.query(sql, tables, cap, {"cluster": cluster, "group": group, **within(window)})
