"""A warehouse of recorded clusters, made by the functions of `replay` without Spark's work around them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from deltalake import write_deltalake

from jobs.captures.recording import Capture
from jobs.replay import CaptureRecords, Row, Rows, bronze_of
from jobs.tables.paths import table_path
from pipelines.arrow_types import row_type, stored
from pipelines.gold.rows import AnalysisConfig, broker, gold_rows
from pipelines.marks import mark_rows
from pipelines.reassignments.rows import reassignment_rows
from schemas.bronze import COVERAGE, QUARANTINE
from schemas.gold import GOLD
from schemas.rows import GroupHistory
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import batches, decoded, silver_of

TABLES = (*SILVER, *REASSIGNMENT_TABLES, *GOLD, COVERAGE, QUARANTINE)
CLUSTERS = {"churn": "eager_churn", "restarts": "rolling_restart", "moves": "reassignment"}


def write(warehouse: Path) -> None:
    """Write recordings of churn with a deploy announced in its middle, rolling restarts and reassignments, and a gap
    and a storm by hand.
    """
    rows = rows_of(CLUSTERS)
    began = datetime(2026, 11, 21, 7, 25, 50, tzinfo=UTC)
    rows[COVERAGE.name].append(
        {"cluster": "churn", "source": "__consumer_offsets", "source_partition": 3, "log_epoch": 0, "from_offset": 10,
         "to_offset": 25, "is_gap": True, "gap_reason": "deleted before it was read", "records": 0, "skipped": 0,
         "quarantined": 0}
    )  # fmt: skip
    rows["storms"].append(
        {"cluster": "churn", "storm_id": "by hand", "scope": "group", "started_at": began, "detected_at": began,
         "is_open": True, "groups": 1, "group_ids": ["imports-joiner"], "rebalances": 3, "unexplained_rebalances": 3,
         "lost_resource_seconds": 12.0, "suspected_cause": "unknown", "score": 0.0, "differences": []}
    )  # fmt: skip
    store(warehouse, rows)


def rows_of(clusters: Mapping[str, str]) -> Rows:
    """Rows of silver and gold (storms excepted) by table, of recordings by the name of their cluster."""
    rows: Rows = {table.name: [] for table in TABLES}
    for cluster, name in clusters.items():
        for table, found in _tables(cluster, name).items():
            rows[table] += found
    return rows


def store(warehouse: Path, rows: Rows) -> None:
    for table in TABLES:
        shape = row_type(table)
        write_deltalake(table_path(warehouse, table), pa.Table.from_struct_array(pa.array(rows[table.name], shape)))


def _tables(cluster: str, name: str) -> Rows:
    capture = Capture(CAPTURES / name)
    (batch,) = batches(name, sources="offsets,log,admin")
    if cluster == "churn":
        batch.observations += [(10**6 + i, body) for i, body in enumerate(_announced(capture.meta["started_ms"]))]
    bronze = bronze_of(batch, cluster, capture.meta)
    rebuilt = silver_of([CaptureRecords(records=batch.records, lines=batch.lines)], name)
    silver = {table: [row | {"cluster": cluster} for row in rows] for table, rows in cast("Rows", rebuilt).items()}
    moved = cast("Rows", reassignment_rows(cluster, *decoded(bronze)))
    tables = silver | moved | _gold(cluster, silver, broker(capture.meta.get("broker_overrides") or {}))
    kept = {t.name: stored(tables[t.name], t).to_pylist() for t in TABLES if t.name in tables}
    marks = mark_rows(row for row in bronze["admin_observations"] if row["kind"] == "mark")
    return kept | {"marks": marks} | {table: bronze[table] for table in ("quarantine", "coverage")}


def _gold(cluster: str, silver: Rows, known: Any) -> Rows:
    until = max(row["last_record_at"] for row in silver["groups"])
    out: Rows = {}
    for group in {row["group_id"] for row in silver["generations"]}:
        mine = {table: [row for row in rows if row["group_id"] == group] for table, rows in silver.items()}
        history = cast("GroupHistory", mine)
        found = gold_rows(cluster, group, history, broker=known, config=AnalysisConfig(), since_ms=0, until_ms=until)
        for table, rows in cast("Rows", found).items():
            out.setdefault(table, []).extend(rows)
    return out


def _announced(started_ms: int) -> list[Row]:
    mark = {"observed_at_ms": started_ms + 40_000, "source": "mark", "kind": "mark", "mark_kind": "deploy"}
    return [mark | {"text": "v2.31", "at": started_ms + 40_000}, mark | {"text": "no time", "at": "noon"}]
