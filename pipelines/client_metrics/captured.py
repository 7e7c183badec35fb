"""Pushes of consumers as lines of a capture's `admin.jsonl`, and back as rows of `client_metrics`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipelines.client_metrics.labels import LONGEST
from pipelines.client_metrics.messages import KIND, Row
from pipelines.coordinator_events import Unreadable
from pipelines.decoding.record_times import LAST_MS, utc_datetime
from schemas.bronze import CLIENT_METRICS
from schemas.states import QuarantineReason

PLACE = ("cluster", "source_id", "line_no", "source_binding")
"""Columns that locate a push in its source. A capture locates it by other fields."""
COLUMNS = {column.name: column.type for column in CLIENT_METRICS.columns if column.name not in PLACE}
NEEDED = ("group_id", "measured_at")
WIDTHS = {"INT": 31, "BIGINT": 63}


def captured(row: Row) -> dict[str, Any]:
    """Return the JSON object of a row, with times in milliseconds, without what is NULL."""
    found = {name: row.get(name) for name in COLUMNS}
    return {"kind": KIND, "source": KIND} | {
        name: round(value.timestamp() * 1000) if isinstance(value, datetime) else value
        for name, value in found.items()
        if value is not None
    }


def pushed_row(body: Mapping[str, Any]) -> Row | Unreadable:
    """Return the columns of `client_metrics` in an object that `captured` returned; other fields are ignored."""
    missing = next((name for name in NEEDED if body.get(name) is None), None)
    if missing is not None:
        return Unreadable(QuarantineReason.INVALID_VALUE, f"{missing} is missing")
    wrong = next((name for name, kind in COLUMNS.items() if not _fits(body.get(name), kind)), None)
    if wrong is not None:
        return Unreadable(QuarantineReason.INVALID_VALUE, f"{wrong} is not a valid {COLUMNS[wrong]}")
    return {
        name: utc_datetime(body[name]) if kind == "TIMESTAMP" else body[name]
        for name, kind in COLUMNS.items()
        if body.get(name) is not None
    }


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return True
    if kind == "STRING":
        return isinstance(value, str) and 0 < len(value) <= LONGEST
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return False
    if kind == "DOUBLE":
        return True
    return isinstance(value, int) and (value <= LAST_MS if kind == "TIMESTAMP" else value < 2 ** WIDTHS[kind])
