"""What the product makes from hostile input: rows of bronze, silver and gold, with their sizes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from dashboards.lake.lake import milliseconds
from jobs.config.settings import Settings
from jobs.silver.silver_tasks import Making
from pipelines.arrow_types import stored
from pipelines.bronze_batch import Records, bronze
from pipelines.coverage import Span
from pipelines.decoding.source_record import SourceRecord
from pipelines.event_batch import TopicReader
from pipelines.gold.advice.latencies import BrokerSettings
from pipelines.gold.marks_nearby import announced
from pipelines.gold.rows import AnalysisConfig, gold_rows
from pipelines.gold.storms.disturbances import disturbances
from pipelines.gold.storms.incremental import StormScan
from pipelines.marks import mark_rows
from pipelines.reassignments.rows import reassignment_rows
from pipelines.rows_of_tables import by_table
from pipelines.silver.client_hosts import ClientHosts
from pipelines.silver.frame import INPUTS
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS
from schemas.gold import MARKS
from schemas.rows import GroupHistory, MarkRow
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, STALLS
from testing.hostile.cost import Made
from testing.hostile.hostile_records import BEGIN_MS, GROUP, fresh_client_ids


def of_records(records: list[tuple[int, bytes, bytes]]) -> tuple[int, Callable[[], Made]]:
    """Return the size of these records, and a function that makes bronze, silver and gold from them."""
    size = sum(len(key) + len(value) for _, key, value in records)
    return size, lambda: _layers(records, [])


def of_lines(messages: list[bytes]) -> tuple[int, Callable[[], Made]]:
    """Return the size of these messages, and a function that makes bronze, silver and gold from them and three
    generations.
    """
    records = fresh_client_ids(3)
    return sum(map(len, messages)), lambda: _layers(records, messages)


def of_marks(messages: list[bytes]) -> tuple[int, Callable[[], Made]]:
    """Return the size of these messages, and a function that makes marks and diagnoses of 100 generations from them."""
    records = fresh_client_ids(100)
    return sum(map(len, messages)), lambda: _layers(records, messages)


def of_polls(messages: list[bytes], polls: int = 200) -> tuple[int, Callable[[], Made]]:
    """Return the size of these messages, and a function that makes reassignments from them and `polls` polls."""
    seen = [
        {"observed_at": BEGIN_MS + i * 15_000, "kind": "reassignments", "body": {"ongoing": []}} for i in range(polls)
    ]

    def work() -> Made:
        read = _events(messages)
        found = reassignment_rows("c", seen, milliseconds(_table(read[COORDINATOR_EVENTS.name])).to_pylist())
        made = [len(json.dumps(row, default=str)) for rows in by_table(found).values() for row in rows]
        return Made(len(made), sum(made)) + _of_arrays(read)

    return sum(map(len, messages)), work


def _layers(records: list[tuple[int, bytes, bytes]], messages: list[bytes]) -> Made:
    made = bronze(Records.of((SourceRecord(0, at, *row) for at, row in enumerate(records)), 0), cluster="c")
    read = _events(messages)
    known = {name: _table((made | read).get(table.name)) for name, table in INPUTS.items()}
    making = Making(quiet_ms=Settings().quiet_ms, hosts=ClientHosts(), topic_names={})
    tables = making.rows(known, pa.table({}))
    total = _of_arrays(made) + _of_arrays(read)
    total += Made(sum(t.num_rows for t in tables.values()), sum(t.nbytes for t in tables.values()))
    observed = milliseconds(_table(read[ADMIN_OBSERVATIONS.name])).to_pylist()
    marks = mark_rows(observed)
    rows = [_sized(marks)]
    announced_ms = milliseconds(stored(marks, MARKS)).to_pylist()
    silver = {
        table.name: [row for row in milliseconds(tables[table]).to_pylist() if row["group_id"] == GROUP]
        for table in (GENERATIONS, GENERATION_MEMBERS, STALLS, GROUP_EVENTS)
    }
    if silver[GENERATIONS.name]:
        rows += [
            _sized(found)
            for found in _gold(cast("GroupHistory", silver), announced(cast("list[MarkRow]", announced_ms)))
        ]
    return sum(rows, total)


def _gold(silver: GroupHistory, marks: list[MarkRow]) -> Iterable[Sequence[Mapping[str, Any]]]:
    until = max(g["joined_at"] for g in silver["generations"])
    yield from gold_rows(
        "c",
        GROUP,
        silver,
        broker=BrokerSettings(),
        config=AnalysisConfig(),
        since_ms=0,
        until_ms=until,
        marks=marks,
    ).values()
    found_disturbances = disturbances(GROUP, silver["generations"], silver["group_events"])
    scan = StormScan(cluster="c", stored=[], since_ms=0, first_seen_at={GROUP: BEGIN_MS})
    scan.find_cluster_storms(found_disturbances)
    scan.storms({GROUP: found_disturbances})


def _events(messages: list[bytes]) -> dict[str, pa.StructArray]:
    reading = TopicReader(cluster="c", topic="t", layout="default", zone="UTC")
    span = Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(messages))
    records = (SourceRecord(0, at, BEGIN_MS, None, message) for at, message in enumerate(messages))
    return reading(Records.of(records, 0), {0: span})


def _table(rows: pa.StructArray | None) -> pa.Table:
    return pa.table({}) if rows is None else pa.Table.from_struct_array(rows)


def _of_arrays(arrays: dict[str, pa.StructArray]) -> Made:
    return Made(sum(map(len, arrays.values())), sum(array.nbytes for array in arrays.values()))


def _sized(rows: Sequence[Mapping[str, Any]]) -> Made:
    return Made(len(rows), sum(len(json.dumps(row, default=str)) for row in rows))
