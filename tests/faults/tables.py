"""The rows that the tables must have however often a job was interrupted, and those that are lost or duplicated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from jobs.replay import Capture, bronze_of, split
from jobs.tables.paths import table_path
from pipelines.silver.rows import silver_rows
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE
from testing.recordings import CAPTURES
from testing.warehouses.rebuilding import histories_of

HISTORY = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS, QUARANTINE)
Rows = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Bronze without anything that depends on batches, and the silver rows that follow from it, with their counts."""

    bronze: Counter[str]
    silver: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The numbers of missing and of additional bronze entries, and whether bronze and silver are equal."""

    lost: int
    duplicated: int
    is_identical: bool


def recorded_content(name: str) -> Content:
    """Return the content of an undisturbed run, computed from the recorded history."""
    capture = Capture(CAPTURES / name)
    (batch,) = split(capture, ("offsets", "log"), 1, None)
    return _content(bronze_of(batch, "kafka", capture.meta))


def content(warehouse: Path) -> Content:
    return _content({t.name: DeltaTable(table_path(warehouse, t)).to_pyarrow_table().to_pylist() for t in HISTORY})


def spans(warehouse: Path) -> list[dict[str, Any]]:
    return DeltaTable(table_path(warehouse, COVERAGE)).to_pyarrow_table().to_pylist()


def difference(expected: Content, found: Content) -> Difference:
    lost, more = (expected.bronze - found.bronze).total(), (found.bronze - expected.bronze).total()
    return Difference(lost=lost, duplicated=more, is_identical=expected == found)


def _content(bronze: Rows) -> Content:
    entries: Counter[str] = Counter()
    for row in bronze[COORDINATOR_RECORDS.name]:
        entries[str([row[name] for name in (*COORDINATOR_RECORDS.key, "group_id", "record_kind", "body")])] += 1
    for row in bronze[OFFSET_COMMITS.name]:
        key = [row[name] for name in ("log_epoch", "source_partition", "group_id", "topic", "partition")]
        entries[f"commits {key}"] += row["commits"]
        entries[f"{key} ends at {row['last_offset']}"] += 0
    for row in bronze[COORDINATOR_EVENTS.name]:
        entries[row["raw"]] += 1
    for row in bronze[QUARANTINE.name]:
        entries[f"{row['reason']} {row['raw_key']!r} {row['raw_value']!r}"] += 1
    silver: Counter[str] = Counter()
    for history in histories_of([bronze]):
        for table, rows in silver_rows(history, 10_000).items():
            silver.update(f"{table} {sorted(row.items(), key=lambda item: item[0])}" for row in rows)
    return Content(bronze=entries, silver=silver)
