"""The table `alerts`, read and written without Spark; it has a row for each incident."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from deltalake import DeltaTable

from dashboards.lake.lake import Lake, moment
from jobs.alerting import alert_queries
from jobs.tables.delta_io import table_path
from pipelines.arrow_types import stored
from pipelines.gold.alerts.incidents import GIVEN_UP_MS, key_of
from schemas.gold import ALERTS
from schemas.rows import AlertRow

MOST = 100_000


def current_alerts(lake: Lake, now_ms: int, oldest_ms: int) -> list[AlertRow]:
    """Open rows, rows resolved lately, and those since `oldest_ms`, which may come to hold again."""
    since = {"resolved": moment(now_ms - GIVEN_UP_MS), "started": moment(oldest_ms)}
    return cast("list[AlertRow]", lake.query(alert_queries.ALERTS, [ALERTS.name], MOST, since).rows)


def save(warehouse: Path, before: Sequence[AlertRow], after: Sequence[AlertRow]) -> None:
    """Turn the rows `before` into `after`, in one commit, or none where they are the same. No row ever goes."""
    known = {key_of(row): row for row in before}
    changed = [row for row in after if known.get(key_of(row)) != row]
    if not changed:
        return
    same = " AND ".join(f"old.{name} = new.{name}" for name in ALERTS.key)
    (
        DeltaTable(table_path(warehouse, ALERTS))
        .merge(stored(changed, ALERTS), same, source_alias="new", target_alias="old")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
