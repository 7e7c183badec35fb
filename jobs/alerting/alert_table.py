"""Reads and writes the table `alerts`. The table has one row per incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from dashboards.lake.lake import Lake, moment
from jobs.alerting import alert_queries
from jobs.tables.tables import Tables
from pipelines.gold.alerts.incidents import GIVEN_UP_MS, key_of
from schemas.gold import ALERTS
from schemas.rows import AlertRow

MOST = 100_000


def current_alerts(lake: Lake, now_ms: int, oldest_ms: int) -> list[AlertRow]:
    """Return open rows, recently resolved rows, and rows since `oldest_ms`, which may fire again."""
    since = {"resolved": moment(now_ms - GIVEN_UP_MS), "started": moment(oldest_ms)}
    return cast("list[AlertRow]", lake.query(alert_queries.ALERTS, [ALERTS.name], MOST, since).rows)


def save(tables: Tables, before: Sequence[AlertRow], after: Sequence[AlertRow]) -> None:
    """Change the rows `before` to `after` in one commit, or write nothing if they are equal. No row is ever deleted."""
    known = {key_of(row): row for row in before}
    changed = [row for row in after if known.get(key_of(row)) != row]
    if changed:
        tables.merge(ALERTS, changed)
