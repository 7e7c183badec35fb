"""Silver rows of a capture without Spark: its batches are folded to bronze, then rebuilt group by group."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from random import Random
from typing import Any, cast

from jobs.captures.recording import Capture, Line
from jobs.replay import CaptureRecords, Row, Rows, bronze_of, split
from pipelines.arrow_types import timestamp_columns
from pipelines.decoding.source_record import SourceRecord
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.history import History
from pipelines.silver.rows import KEPT, silver_rows
from schemas.bronze import COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.rows import SilverRows
from testing.recordings import CAPTURES

INPUTS = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS)


def batches(
    name: str, *, sources: str = "offsets,log", count: int = 1, seed: int | None = None
) -> list[CaptureRecords]:
    return split(Capture(CAPTURES / name), sources.split(","), count, seed)


def with_duplicates(given: list[CaptureRecords], share: float, seed: int) -> list[CaptureRecords]:
    """Return the batches, with some earlier input repeated as contiguous stretches of records and as lines."""
    random = Random(seed)
    records: list[SourceRecord] = []
    lines: list[Line] = []
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


def histories_of(bronze: Iterable[Mapping[str, list[Row]]]) -> list[History]:
    """Return a history for each group in rows of bronze."""
    by_group: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for rows in bronze:
        for table in INPUTS:
            for row in rows[table.name]:
                if row["group_id"] is not None:
                    by_group[row["group_id"]][table.name].append(_milliseconds(row, timestamp_columns(table)))
    return [History.of("kafka", group, *_inputs(parts)) for group, parts in sorted(by_group.items())]


def _inputs(parts: Mapping[str, list[Row]]) -> tuple[list[Row], list[Row], list[Row]]:
    records, commits, events = (parts[table.name] for table in INPUTS)
    return records, commits, events


def _milliseconds(row: dict[str, Any], times: tuple[str, ...]) -> dict[str, Any]:
    row = dict(row)
    for name in times:
        if row.get(name) is not None:
            row[name] = round(row[name].timestamp() * 1000)
    if isinstance(row.get("body"), str):
        row["body"] = json.loads(row["body"])
    return row


def silver_of(given: list[CaptureRecords], name: str, hosts: ClientHosts = KEPT) -> SilverRows:
    out: dict[str, list[Any]] = defaultdict(list)
    for history in histories(given, Capture(CAPTURES / name).meta):
        for table, rows in cast("Rows", silver_rows(history, 10_000, hosts=hosts)).items():
            out[table] += rows
    return cast("SilverRows", out)


def truth(name: str) -> dict[str, Any]:
    with gzip.open(CAPTURES / name / "truth" / "summary.json.gz", "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def decoded(rows: dict[str, list[Row]]) -> tuple[list[Row], list[Row]]:
    """`admin_observations` and `coordinator_events` with timestamps in ms and bodies as objects."""
    observations = [
        row | {"observed_at": _epoch_ms(row["observed_at"]), "body": json.loads(row["body"])}
        for row in rows["admin_observations"]
    ]
    return observations, [row | {"event_at": _epoch_ms(row["event_at"])} for row in rows["coordinator_events"]]


def _epoch_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
