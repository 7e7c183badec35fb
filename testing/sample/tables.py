"""Rows of the sample as Delta tables, written without Spark. Times in rows are milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from deltalake import write_deltalake

from pipelines.arrow_types import TYPES as STORED
from schemas.bronze import ADMIN_OBSERVATIONS, CLIENT_METRICS, COORDINATOR_EVENTS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from schemas.gold import (
    ABSENCE_COSTS,
    BY_GROUP,
    CAUSES,
    CHANGED_VALUES,
    DEPLOYS,
    DIFFERENCES,
    MARKS,
    POD_CHANGES,
    SETTING_CHANGES,
    STORMS,
    VERDICT_SUMS,
    VERDICTS,
)
from schemas.operations import OPERATIONS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.tables import RESOURCES, Table

TYPES = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "ARRAY<STRING>": pa.list_(pa.string()),
    "ARRAY<INT>": pa.list_(pa.int32()),
    DIFFERENCES: pa.list_(
        pa.struct(
            [
                ("attribute", pa.string()),
                ("value", pa.string()),
                ("share", pa.float64()),
                ("baseline", pa.float64()),
                ("lift", pa.float64()),
            ]
        )
    ),
    BY_GROUP: STORED[BY_GROUP],
    CAUSES: STORED[CAUSES],
    CHANGED_VALUES: STORED[CHANGED_VALUES],
    ABSENCE_COSTS: STORED[ABSENCE_COSTS],
    VERDICT_SUMS: STORED[VERDICT_SUMS],
    POD_CHANGES: STORED[POD_CHANGES],
    "BINARY": pa.binary(),
    RESOURCES: pa.list_(pa.struct([("name", pa.string()), ("index", pa.int32())])),
}

Rows = dict[str, list[dict[str, Any]]]


def schema(table: Table) -> pa.Schema:
    return pa.schema([pa.field(c.name, TYPES[c.type], nullable=c.name not in table.key) for c in table.columns])


def write(warehouse: Path, rows: Rows, mode: Literal["append", "overwrite"] = "append") -> None:
    known = (*SILVER, *REASSIGNMENT_TABLES, VERDICTS, DEPLOYS, SETTING_CHANGES, STORMS, MARKS, *OPERATIONS)
    bronze = (COVERAGE, QUARANTINE, ADMIN_OBSERVATIONS, CLIENT_METRICS, OFFSET_COMMITS, COORDINATOR_EVENTS)
    for table in (*known, *bronze):
        shape = schema(table)
        data = [
            {
                f.name: datetime.fromtimestamp(row[f.name] / 1000, UTC)
                if pa.types.is_timestamp(f.type) and row.get(f.name) is not None
                else row.get(f.name)
                for f in shape
            }
            for row in rows.get(table.name, [])
        ]
        write_deltalake(str(warehouse / table.name), pa.Table.from_pylist(data, schema=shape), mode=mode)


def merge(into: Rows, *more: Rows) -> Rows:
    for rows in more:
        for name, found in rows.items():
            into.setdefault(name, []).extend(found)
    return into
