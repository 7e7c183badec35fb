"""Reads the facts that alerts depend on from the current tables, without Spark. Writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from dashboards.lake.lake import Lake, Parameter, moment
from jobs.alerting import alert_queries as sql
from jobs.alerting.coverage_reader import CoverageReader
from jobs.tables.silver_rows import stored_rows, timestamp_scalar
from pipelines.gold.alerts.alert import AlertLimits, Facts
from pipelines.gold.alerts.burn import WINDOWS, Loss, Stopped, least_loss_ms
from pipelines.gold.alerts.freshness import Asked, Read, freshness
from schemas.bronze import OFFSET_COMMITS
from schemas.states import Pattern
from schemas.thresholds import HOUR_MS

MOST = 100_000
"""Maximum rows of a query result. More affected groups than that are one common problem."""

DIAGNOSED_MS = 7 * 24 * HOUR_MS
"""Older diagnoses are not used as causes."""

ADDED_UP_MS = 30_000
"""Interval between sums of losses. Their shortest window is minutes, and each sum reads days of stalls."""

Row = dict[str, Any]


@dataclass(slots=True)
class Watch:
    """Records the time since which positions have not advanced, as observed by this process."""

    _seen: dict[tuple[str, str], tuple[int | None, int]] = field(default_factory=dict)

    def still_since(self, cluster: str, kind: str, position: int | None, now_ms: int) -> int:
        known = self._seen.get((cluster, kind))
        if known is None or known[0] != position:
            self._seen[cluster, kind] = known = (position, now_ms)
        return known[1]


@dataclass(frozen=True, kw_only=True)
class FactReader:
    """Reads facts from one warehouse.

    Without `watch`, facts are read once and depend only on the records' times. `_lost` holds by cluster when its losses
    were last summed, and the result.
    """

    lake: Lake
    warehouse: Path
    limits: AlertLimits
    watch: Watch | None = None
    coverage: CoverageReader = field(default_factory=CoverageReader)
    _lost: dict[str, tuple[int, list[Loss]]] = field(default_factory=dict)

    def clusters(self) -> list[str]:
        """Return the clusters from which anything has been read."""
        self.coverage.refresh(self.warehouse)
        return sorted(self.coverage.clusters() | {row["cluster"] for row in self._ask(sql.BUILT_CLUSTERS, "groups")})

    def facts(
        self, cluster: str, now_ms: int, asked: Asked | None, raised: AbstractSet[tuple[str, str]] = frozenset()
    ) -> Facts:
        """Return all facts needed to evaluate the cluster's alerts at `now_ms`."""
        self.coverage.refresh(self.warehouse)
        seen = freshness(now_ms, self.limits.stale_ms, self._read(cluster, now_ms), asked)
        until = now_ms if seen.known_until_ms is None else seen.known_until_ms
        hour = moment(until // HOUR_MS * HOUR_MS - HOUR_MS)
        patterns = self._ask(sql.PATTERNS, "cluster_patterns", cluster=cluster)
        rebalancing = self._ask(sql.REBALANCING, "groups", cluster=cluster)
        flapping = self._ask(sql.FLAPPING, "group_health", cluster=cluster, start=hour)
        losses = self._losses(cluster, until, now_ms)
        flappers = sorted({row["group_id"] for row in flapping})
        stuck = {row["subject"] for row in patterns if row["pattern"] == Pattern.STUCK_REBALANCE}
        troubled = {row["group_id"] for row in rebalancing} | stuck | {loss.group_id for loss in losses} | set(flappers)
        return Facts(
            cluster=cluster,
            now_ms=now_ms,
            freshness=seen,
            polled_until_ms=self.coverage.polled_until(cluster),
            storms=self._ask(sql.STORMS, "storms", cluster=cluster),
            rebalancing=rebalancing,
            flapping=flapping,
            departures=self._of_groups(sql.DEPARTURES, "group_events", flappers, cluster=cluster, start=hour),
            losses=losses,
            stalled=self._ask(sql.STALLED, "reassignments", cluster=cluster),
            unowned=self._unowned(cluster),
            causes=self._causes(cluster, now_ms, troubled),
            patterns=patterns,
            raised=raised,
        )

    def _read(self, cluster: str, now_ms: int) -> Read:
        reached = self.coverage.of_offsets(cluster)
        upto = {partition: found.upto for partition, found in reached.items()}
        newest = max((found.newest_ms for found in reached.values() if found.newest_ms is not None), default=None)
        built = self._built(cluster, newest)
        known = Read(upto=upto, newest_ms=newest, built_ms=built)
        if self.watch is None:
            return known
        return replace(
            known,
            still_since_ms=self.watch.still_since(cluster, "read", sum(upto.values()), now_ms),
            built_still_since_ms=self.watch.still_since(cluster, "built", built, now_ms),
        )

    def _built(self, cluster: str, newest_ms: int | None) -> int | None:
        """Return how far silver reaches, if bronze holds commits that are newer by more than the limit; else None."""
        found = self._ask(sql.BUILT, "groups", cluster=cluster)
        built = found[0]["until_at"] if found else None
        if newest_ms is None or built is None or newest_ms - built <= self.limits.stale_ms:
            return None
        late_ms = built + self.limits.stale_ms
        # The expiry of offsets does not change a group.
        newer = stored_rows(
            self.warehouse,
            OFFSET_COMMITS,
            ("last_commit_at",),
            where=(pc.field("cluster") == cluster)
            & ~pc.field("is_tombstone")
            & (pc.field("last_commit_at") > timestamp_scalar(late_ms)),
            since=("last_commit_at", late_ms),
        )
        return int(built) if newer.num_rows else None

    def _losses(self, cluster: str, until_ms: int, now_ms: int) -> list[Loss]:
        asked_ms, losses = self._lost.get(cluster, (0, []))
        if not 0 <= now_ms - asked_ms < ADDED_UP_MS:
            losses = self._added_up(cluster, until_ms)
            self._lost[cluster] = now_ms, losses
        return losses

    def _added_up(self, cluster: str, until_ms: int) -> list[Loss]:
        parameters: dict[str, Parameter] = {
            "cluster": cluster,
            "until_ms": until_ms,
            "widths": ",".join(map(str, WINDOWS)),
        }
        least = least_loss_ms(self.limits.availability)
        lost = self._ask(sql.LOST, "stalls", **parameters, start=moment(until_ms - WINDOWS[-1]), least_ms=round(least))
        by_group: dict[str, list[Row]] = defaultdict(list)
        for row in lost:
            by_group[row["group_id"]].append(row)
        owned = self._of_groups(sql.OWNED, "generations", sorted(by_group), **parameters)
        resources = {(row["group_id"], row["width"]): row["resources"] for row in owned}
        return [
            Loss(
                group_id=group,
                windows={row["width"]: _stopped(row, resources.get((group, row["width"]), 0.0)) for row in rows},
            )
            for group, rows in sorted(by_group.items())
        ]

    def _unowned(self, cluster: str) -> list[Row]:
        """Return topics without an owner according to the newest analysis of their group."""
        found = self._ask(sql.UNOWNED, "patterns", cluster=cluster)
        groups = sorted({row["group_id"] for row in found})
        analyzed = self._of_groups(sql.ANALYZED, "diagnoses", groups, cluster=cluster)
        newest = {row["group_id"]: row["as_of"] for row in analyzed}
        joined = self._of_groups(sql.LAST_JOINED, "generations", groups, cluster=cluster)
        last = {row["group_id"]: row["joined_at"] for row in joined}
        stopped = self._of_groups(sql.ONCE_OWNED, "stalls", groups, cluster=cluster)
        owned = {(row["group_id"], row["name"]) for row in stopped}
        return [
            row
            | {
                "is_newest": last.get(row["group_id"], 0) <= row["last_at"],
                "had_owner": (row["group_id"], row["subject"]) in owned,
            }
            for row in found
            if newest.get(row["group_id"], 0) <= row["as_of"]
        ]

    def _causes(self, cluster: str, now_ms: int, groups: Iterable[str]) -> Mapping[str, Row]:
        start = moment(now_ms - DIAGNOSED_MS)
        found = self._of_groups(sql.CAUSES, "diagnoses", sorted(groups), cluster=cluster, start=start)
        return {row["group_id"]: row for row in found}

    def _of_groups(self, query: str, table: str, groups: list[str], **parameters: Parameter) -> list[Row]:
        return self._ask(query, table, groups=groups, **parameters) if groups else []

    def _ask(self, query: str, table: str, **parameters: Parameter) -> list[Row]:
        return self.lake.query(query, [table], MOST, parameters).rows


def _stopped(row: Row, resources: float) -> Stopped:
    return Stopped(
        lost_ms=row["lost"] * 1000,
        lost_ms_min=row["lost_min"] * 1000,
        lost_ms_max=row["lost_max"] * 1000,
        first_ms=row["first_ms"],
        resources=resources,
        lost_ms_low=row["lost_low"] * 1000,
        lost_ms_high=row["lost_high"] * 1000,
    )
