"""Silver rows of a recorded history without Spark: the capture's batches folded to bronze, then rebuilt group by group."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from jobs.replay import Capture, CaptureRecords, bronze_of, split
from pipelines.arrow_types import instants
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.history import History
from pipelines.silver.rows import KEPT, silver_rows
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.rows import SilverRows

CAPTURES = Path(__file__).parents[1] / "captures"
INPUTS = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS)


def batches(
    name: str, *, sources: str = "offsets,log", count: int = 1, seed: int | None = None
) -> list[CaptureRecords]:
    return split(Capture(CAPTURES / name), sources.split(","), count, seed)


def with_duplicates(given: list[CaptureRecords], share: float, seed: int) -> list[CaptureRecords]:
    """Each batch again brings some of what was read before, as contiguous stretches and repeated lines."""
    random, records, lines = Random(seed), [], []
    out = []
    for batch in given:
        extra = []
        if records:
            for _ in range(3):
                start = random.randrange(len(records))
                extra.append(records[start : start + int(len(records) * share / 3)])
        again = [line for line in lines if random.random() < share]
        out.append(CaptureRecords(records=batch.records, lines=[*again, *batch.lines]))
        out += [CaptureRecords(records=sorted(part, key=lambda r: (r.partition, r.offset))) for part in extra]
        records += batch.records
        lines += batch.lines
    return out


def histories(given: list[CaptureRecords], meta: dict[str, Any]) -> list[History]:
    return histories_of(bronze_of(batch, "kafka", meta) for batch in given)


def histories_of(bronze: Iterable[Mapping[str, list[dict[str, Any]]]]) -> list[History]:
    """One for each group in rows of bronze."""
    by_group: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for rows in bronze:
        for table in INPUTS:
            for row in rows[table.name]:
                if row["group_id"] is not None:
                    by_group[row["group_id"]][table.name].append(_milliseconds(row, instants(table)))
    return [
        History.of("kafka", group, *(parts[table.name] for table in INPUTS))
        for group, parts in sorted(by_group.items())
    ]


def _milliseconds(row: dict[str, Any], times: tuple[str, ...]) -> dict[str, Any]:
    row = dict(row)
    for name in times:
        if row.get(name) is not None:
            row[name] = round(row[name].timestamp() * 1000)
    if isinstance(row.get("body"), str):
        row["body"] = json.loads(row["body"])
    return row


def silver_of(given: list[CaptureRecords], name: str, hosts: ClientHosts = KEPT) -> SilverRows:
    out: SilverRows = defaultdict(list)
    for history in histories(given, Capture(CAPTURES / name).meta):
        for table, rows in silver_rows(history, 10_000, hosts=hosts).items():
            out[table] += rows
    return out


def truth(name: str) -> dict[str, Any]:
    with gzip.open(CAPTURES / name / "truth" / "summary.json.gz", "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found
