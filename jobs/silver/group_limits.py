"""Limits on the groups that are built into silver: their number per cluster, and the bytes of their ids.

They exist because a client that may only commit offsets can create a group with any id.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from jobs.tables.engine import connect, show
from jobs.tables.tables import Tables
from pipelines.limits import Limits
from pipelines.long_names import shortened
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.operations import LIMITS_REACHED
from schemas.rows import LimitReachedRow
from schemas.silver import GROUPS
from schemas.states import Limit

COUNT_SECONDS = 60.0
"""Seconds between two counts of the groups that are not built. Each count scans all of bronze."""

EXAMPLE_BYTES = 120

ADMITTED = """
WITH room AS (
    SELECT cluster, count(*) AS built FROM groups GROUP BY cluster
), ranked AS (
    SELECT t.cluster, t.group_id, g.group_id IS NOT NULL AS is_built, row_number() OVER (
        PARTITION BY t.cluster, g.group_id IS NULL ORDER BY t.since_at, t.group_id
    ) AS position
    FROM affected t LEFT JOIN groups g ON t.cluster = g.cluster AND t.group_id = g.group_id
)
SELECT ranked.cluster, ranked.group_id FROM ranked LEFT JOIN room ON ranked.cluster = room.cluster
WHERE is_built OR position + coalesce(built, 0) <= $most
"""

NOT_BUILT = """
WITH room AS (
    SELECT cluster, count(*) >= $most AS is_full FROM groups GROUP BY cluster
), known AS (
    SELECT cluster, group_id FROM offset_commits UNION SELECT cluster, group_id FROM coordinator_records
    UNION SELECT cluster, group_id FROM coordinator_events WHERE group_id IS NOT NULL
)
SELECT cluster, strlen(group_id) > $name_bytes AS is_long, count(*) AS groups, min(group_id) AS example
FROM known ANTI JOIN groups USING (cluster, group_id) LEFT JOIN room USING (cluster)
WHERE is_long OR is_full GROUP BY ALL ORDER BY ALL
"""
"""Groups with short ids in a cluster below its limit are not counted, because they will still be built."""

GROUP = ("cluster", "group_id")
NONE_BUILT = pa.schema([("cluster", pa.string()), ("group_id", pa.string())]).empty_table()


@lru_cache(maxsize=8)
def group_limits(warehouse: Path, limits: Limits) -> GroupLimits:
    """Return the one instance of this process."""
    return GroupLimits(warehouse, limits)


@dataclass(slots=True)
class GroupLimits:
    """The limits of one warehouse, and which groups exceed them, in one process."""

    warehouse: Path
    limits: Limits
    _has_news: bool = field(default=False, init=False)
    _counted_at: float = field(default=float("-inf"), init=False)
    _reported: list[tuple[Any, ...]] = field(default_factory=list, init=False)

    def admitted(self, affected: pa.Table, *, anew: bool = False) -> pa.Table:
        """Return the rows of `affected` (cluster, group_id, since_at, …) whose groups are built, and rows without a
        group.

        Groups in silver stay, unless all is built `anew`. Other groups come in the order of their first row, then of
        their id. `report` reports the groups that are left out.
        """
        kept = self._with_room(self._with_short_ids(affected), anew=anew)
        self._has_news = self._has_news or kept.num_rows < affected.num_rows
        return kept

    def report(self, tables: Tables) -> None:
        """Write the number of groups that are left out to `limits_reached`, at most once in `COUNT_SECONDS`.

        Call it after the other groups are built.
        """
        now = time.monotonic()
        if not self._has_news or now - self._counted_at < COUNT_SECONDS:
            return
        self._counted_at, self._has_news = now, False
        with connect() as engine:
            for table in (OFFSET_COMMITS, COORDINATOR_RECORDS, COORDINATOR_EVENTS, GROUPS):
                show(engine, table.name, self.warehouse, table, columns=GROUP, is_distinct=True)
            values = {"name_bytes": self.limits.name_bytes, "most": self.limits.groups}
            found = engine.execute(NOT_BUILT, values).fetchall()
        if found != self._reported:
            self._reported = found
            at = time.time_ns() // 1_000_000
            tables.append(LIMITS_REACHED, [self._row(at, *each) for each in found])

    def _with_short_ids(self, affected: pa.Table) -> pa.Table:
        size = pc.fill_null(pc.binary_length(affected["group_id"]), 0)
        return affected.filter(pc.less_equal(size, self.limits.name_bytes))

    def _with_room(self, affected: pa.Table, *, anew: bool) -> pa.Table:
        if anew and affected.num_rows <= self.limits.groups:
            return affected
        with connect() as engine:
            if anew:
                engine.register("groups", NONE_BUILT)
            else:
                show(engine, "groups", self.warehouse, GROUPS, columns=GROUP)
            built = engine.execute("SELECT count(*) FROM groups GROUP BY cluster").fetchall()
            if affected.num_rows + max((count for (count,) in built), default=0) <= self.limits.groups:
                return affected
            named = affected.filter(pc.is_valid(affected["group_id"])).select(["cluster", "group_id", "since_at"])
            engine.register("affected", named)
            found = engine.execute(ADMITTED, {"most": self.limits.groups}).fetchall()
        kept = set(found)
        groups = zip(affected["cluster"].to_pylist(), affected["group_id"].to_pylist(), strict=True)
        return affected.filter(pa.array([group[1] is None or group in kept for group in groups], pa.bool_()))

    def _row(self, at: int, cluster: str, is_long: bool, groups: int, example: str) -> LimitReachedRow:  # noqa: FBT001 - a row
        return {
            "cluster": cluster,
            "limit_name": Limit.MAX_NAME_BYTES if is_long else Limit.MAX_GROUPS,
            "reached_at": at,
            "allowed": self.limits.name_bytes if is_long else self.limits.groups,
            "groups": groups,
            "example": shortened(example, EXAMPLE_BYTES),
        }
