"""Reads what traces are made of: rebalances with members and resumptions, deploys and storms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboards.lake.lake import Lake, Parameter, moment
from jobs.alerting.otlp import trace_queries as sql
from pipelines.telemetry.cause_spans import deploy_link, deploy_span, storm_link, storm_span
from pipelines.telemetry.rebalance_spans import rebalance_spans
from pipelines.telemetry.span import TraceSpan
from schemas.thresholds import DAY_MS

MOST = 200_000
MOST_STORMS = 1_000
DEPLOY_MS = 30 * 60_000
"""How long after a mark a rebalance may belong to its deploy, as long as the deploy has no end."""
DEPLOY_BEFORE_MS = 24 * 3_600_000
"""How long before a rebalance its deploy may have started."""

Row = Mapping[str, Any]


class TraceReader:
    """Queries of one round over one cluster."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self._lake, self._cluster = lake, cluster

    def completed(self, start_ms: int, until_ms: int, cap: int) -> list[dict[str, Any]]:
        """Return the rows of rebalances that completed in this range, in the order of their completion."""
        # Asked in each round, so only recent files are opened: a rebalance joins at most a day before it completes.
        recent = {"generations": (moment(start_ms - DAY_MS), None)}
        asked: dict[str, Parameter] = {"start": moment(start_ms), "until": moment(until_ms)}
        return self._lake.query(sql.COMPLETED, recent, cap, {"cluster": self._cluster, **asked}).rows

    def passed(self, start_ms: int, until_ms: int) -> int:
        """Return how many rebalances completed in this range."""
        found = self._ask(sql.PASSED, "generations", 1, start=moment(start_ms), until=moment(until_ms))
        return int(found[0]["found"]) if found else 0

    def storms(self, start_ms: int) -> list[dict[str, Any]]:
        """Return the newest storms that are open, or ended since then, in the order of their start."""
        return self._ask(sql.STORMS, "storms", MOST_STORMS, start=moment(start_ms))[::-1]

    def traces(
        self, rows: Sequence[Row], storms: Sequence[Row]
    ) -> Iterator[tuple[Row, list[TraceSpan], list[TraceSpan]]]:
        """Yield each rebalance with its spans, and the spans of the deploys that it links to."""
        groups = sorted({row["group_id"] for row in rows})
        keys = [f"{row['incarnation']}/{row['generation_id']}/{row['group_id']}" for row in rows]
        asked: dict[str, Parameter] = {"groups": groups, "keys": keys}
        members: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for member in self._ask(sql.MEMBERS, "generation_members", MOST, **asked):
            members[_key(member)].append(member)
        resumed = {_key(row): row for row in self._ask(sql.RESUMED, "stalls", MOST, **asked)}
        first, last = min(row["joined_at"] for row in rows), max(row["completed_at"] for row in rows)
        deploys = self._ask(
            sql.DEPLOYS, "deploys", MOST, groups=groups, start=moment(first - DEPLOY_BEFORE_MS), until=moment(last)
        )
        for row in rows:
            mine = [deploy for deploy in deploys if _is_of_deploy(row, deploy)]
            links = [*map(deploy_link, mine), *(storm_link(storm) for storm in storms if _is_in_storm(row, storm))]
            spans = rebalance_spans(row, members[_key(row)], resumed.get(_key(row)), links)
            yield row, spans, [deploy_span(deploy) for deploy in mine]

    def _ask(self, query: str, table: str, cap: int, **parameters: Parameter) -> list[dict[str, Any]]:
        return self._lake.query(query, [table], cap, {"cluster": self._cluster, **parameters}).rows


def ended_storms(storms: Sequence[Row]) -> Iterator[tuple[Row, TraceSpan]]:
    """Yield the storms that are over, with their spans."""
    for row in storms:
        if not row["is_open"] and row["ended_at"] is not None:
            yield row, storm_span(row)


def _key(row: Row) -> tuple[Any, ...]:
    return row["group_id"], row["incarnation"], row["generation_id"]


def _is_of_deploy(row: Row, deploy: Row) -> bool:
    until = deploy["started_at"] + DEPLOY_MS if deploy["ended_at"] is None else deploy["ended_at"]
    return bool(row["group_id"] == deploy["group_id"] and deploy["started_at"] <= row["completed_at"] <= until)


def _is_in_storm(row: Row, storm: Row) -> bool:
    ended = storm["ended_at"]
    return bool(
        row["group_id"] in (storm["group_ids"] or ())
        and storm["started_at"] <= row["completed_at"]
        and (storm["is_open"] or ended is None or row["joined_at"] <= ended)
    )
