"""The table `alerts`, read and written without Spark: a second of its commits would be a second of every page's delay.

It is the one table that is not clustered, which deltalake could not write; it has a row for each incident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema

from dashboards.gold_store import moment
from dashboards.lake import Lake
from jobs import alert_queries
from jobs.delta_io import PROPERTIES, refuse_newer, table_path
from pipelines.arrow_types import microseconds, row_type
from pipelines.gold.alerts.incidents import GIVEN_UP_MS
from schemas.gold import ALERTS

MOST = 100_000
Row = Mapping[str, Any]


def create(warehouse: Path) -> None:
    """Make the table unless it is there.

    Raises:
        UserError: it was written by a newer Regroup.
    """
    path = table_path(warehouse, ALERTS)
    if DeltaTable.is_deltatable(path):
        refuse_newer(path)
        return
    fields = Schema.from_arrow(pa.schema(list(row_type(ALERTS)))).fields
    told = [
        Field(field.name, field.type, nullable=column.name not in ALERTS.key, metadata={"comment": column.comment})
        for field, column in zip(fields, ALERTS.columns, strict=True)
    ]
    DeltaTable.create(
        path,
        Schema(told),
        mode="ignore",
        description=ALERTS.comment,
        configuration=dict(PROPERTIES),
        raise_if_key_not_exists=False,
    )


def current(lake: Lake, now_ms: int, oldest_ms: int) -> list[dict[str, Any]]:
    """Open rows, rows resolved lately, and those since `oldest_ms`, which may come to hold again."""
    since = {"resolved": moment(now_ms - GIVEN_UP_MS), "started": moment(oldest_ms)}
    return lake.query(alert_queries.ALERTS, [ALERTS.name], MOST, since).rows


def save(warehouse: Path, before: Sequence[Row], after: Sequence[Row]) -> None:
    """Turn the rows `before` into `after`, in one commit, or none where they are the same. No row ever goes."""
    changed = [row for row in after if row not in before]
    if not changed:
        return
    same = " AND ".join(f"old.{name} = new.{name}" for name in ALERTS.key)
    (
        DeltaTable(table_path(warehouse, ALERTS))
        .merge(_stored(changed), same, source_alias="new", target_alias="old")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


def _stored(rows: Sequence[Row]) -> pa.Table:
    told = [microseconds(row, ALERTS) for row in rows]
    return pa.Table.from_pylist(told, schema=pa.schema(list(row_type(ALERTS))))
