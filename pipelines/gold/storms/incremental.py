"""Incremental search for storms of a cluster: which stored storms must be checked again, and the storms found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.gold.storms.cluster_storms import BASELINE_MS as FLEET_BASELINE_MS
from pipelines.gold.storms.cluster_storms import cluster_storms
from pipelines.gold.storms.disturbances import WINDOW_MS, Disturbance
from pipelines.gold.storms.storms import BASELINE_MS, CALM_MS, Span, Storm, group_storms
from schemas.rows import StormRow
from schemas.states import StormScope


@dataclass(kw_only=True)
class StormScan:
    """One check of a cluster. Times are in milliseconds.

    `stored` are the cluster's existing rows of `storms`. Its disturbances may have changed from `since_ms` on. Order of
    use: read the disturbances of all groups since `lately`, then those of single groups since `needed`; then replace
    the rows `replaced` with the result of `storms`.
    """

    cluster: str
    stored: Sequence[StormRow]
    since_ms: int
    first_seen_at: Mapping[str, int]
    fleet: list[Storm] = field(default_factory=list)
    _starts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._rows: dict[str, list[StormRow]] = defaultdict(list)
        for row in self.stored:
            if row["scope"] == StormScope.GROUP:
                self._rows[row["group_ids"][0]].append(row)
        self._fleet_rows = [row for row in self.stored if row["scope"] == StormScope.FLEET]
        self.fleet_since = _calm(self.since_ms, self._fleet_rows)

    @property
    def lately(self) -> int:
        """Time from which the disturbances of all groups are needed."""
        return self.fleet_since - FLEET_BASELINE_MS - WINDOW_MS

    @property
    def kept(self) -> int:
        """Time from which disturbances will be needed in a later check, also by groups without a stored storm."""
        return min([self.fleet_since, *map(self._since, self._rows)]) - BASELINE_MS - WINDOW_MS

    def needed(self, group_id: str) -> int:
        """Return the time from which the disturbances of this group are needed."""
        return self._since(group_id) - BASELINE_MS - WINDOW_MS

    def find_cluster_storms(self, lately: Iterable[Disturbance]) -> None:
        """Find the fleet storms, given the disturbances of all groups since `lately`."""
        self.fleet = cluster_storms(self.cluster, lately, self.first_seen_at.values(), since_ms=self.fleet_since)

    def groups(self, lately: Iterable[Disturbance]) -> set[str]:
        """Return the groups that may have a storm of their own, or may no longer have one."""
        disturbed = {s.group_id for s in lately if s.at >= self.fleet_since - WINDOW_MS and not s.is_explained}
        return disturbed | {group for group, rows in self._rows.items() if any(self._is_replaced(row) for row in rows)}

    def storms(self, of_groups: Mapping[str, Sequence[Disturbance]]) -> list[Storm]:
        """Return all storms, given the disturbances of `groups`."""
        fleet_spans = self._fleet_spans()
        alone = [
            storm
            for group, mine in sorted(of_groups.items())
            for storm in group_storms(
                self.cluster,
                group,
                mine,
                first_seen_at=self.first_seen_at.get(group, 0),
                since_ms=self._since(group),
                fleet_spans=fleet_spans[group],
            )
        ]
        return [*self.fleet, *alone]

    @property
    def replaced(self) -> list[StormRow]:
        """Stored rows that were checked again."""
        return [row for row in self.stored if self._is_replaced(row)]

    def _is_replaced(self, row: StormRow) -> bool:
        is_fleet = row["scope"] == StormScope.FLEET
        since = self.fleet_since if is_fleet else self._since(row["group_ids"][0])
        return bool(row["started_at"] >= since)

    def _since(self, group_id: str) -> int:
        if group_id not in self._starts:
            self._starts[group_id] = _calm(self.fleet_since, self._rows.get(group_id, []))
        return self._starts[group_id]

    def _fleet_spans(self) -> Mapping[str, Sequence[Span]]:
        out: dict[str, list[Span]] = defaultdict(list)
        for row in self._fleet_rows:
            # Rows without an end are open; all open rows are replaced.
            if not self._is_replaced(row) and (end := row["ended_at"]) is not None:
                for group in row["group_ids"]:
                    out[group].append((row["started_at"], end))
        for storm in self.fleet:
            for group in storm.group_ids:
                out[group].append((storm.started_at, storm.last_at))
        return out


def _calm(since: int, rows: Sequence[StormRow]) -> int:
    """Return the latest time up to `since` that lies in none of these storms."""
    for row in sorted(rows, key=lambda row: row["started_at"], reverse=True):
        end = row["ended_at"]
        if row["started_at"] < since and (end is None or end + CALM_MS + WINDOW_MS >= since):
            since = row["started_at"]
    return since
