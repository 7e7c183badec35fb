"""`regroup replay CAPTURE`: rebuild every table from a capture folder, with the functions of a live cluster."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from jobs.analyze import analyze
from jobs.build import rebuild_new
from jobs.captures.capture_store import local_copy
from jobs.captures.recording import Capture, Line
from jobs.config.clusters import DEFAULT_CLUSTER, cluster_name
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.spark.spark import session_of
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables, needs_spark
from jobs.tables.delta_io import claim
from jobs.tables.location import shown
from jobs.tables.new_rows import NewRows
from pipelines.bronze_batch import bronze_rows
from pipelines.client_metrics.captured import pushed_row
from pipelines.client_metrics.messages import KIND as PUSHED
from pipelines.coordinator_events import Unreadable
from pipelines.decoding.source_record import SourceRecord
from pipelines.kubernetes.observation_rows import rows_of_lines
from pipelines.kubernetes.pod_facts import KIND, PodFact, fact
from pipelines.limits import DEFAULT_LIMITS, Limits
from pipelines.log_layouts import layout, zone
from pipelines.log_lines import PlacedLine, line_rows
from pipelines.marks import mark
from pipelines.observations import Refused
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, CLIENT_METRICS, COORDINATOR_EVENTS, QUARANTINE
from schemas.gold import GOLD, MARKS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from schemas.states import QuarantineReason
from schemas.written import count

MOST_BATCHES = 10_000
SOURCES = ("offsets", "log", "admin")
T = TypeVar("T")
Row = dict[str, Any]
Rows = dict[str, list[Row]]


@dataclass(slots=True, kw_only=True)
class CaptureRecords:
    """The input that one batch of `ingest` would have read."""

    records: list[SourceRecord] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    observations: list[tuple[int, dict[str, Any] | Refused]] = field(default_factory=list)


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Run `regroup replay`.

    Raises:
        UserError: an option is wrong, the capture cannot be read, or the warehouse belongs to another source.
    """
    sources = args.sources.split(",")
    unknown = sorted(set(sources) - set(SOURCES))
    if unknown:
        raise UserError(f"Unknown source {unknown[0]!r} in --sources: known are {', '.join(SOURCES)}.")
    settings.hosts()  # Reports a missing key before anything is written.
    if not 1 <= args.batches <= MOST_BATCHES:
        raise UserError(f"The number of --batches must be from 1 to {MOST_BATCHES:,}, but is {args.batches}.")
    layouts = {each.events_layout for each in settings.clusters}
    cluster = cluster_name(args.cluster or DEFAULT_CLUSTER)
    with local_copy(args.capture, settings.capture_mb) as folder:
        capture = Capture(folder, settings.capture_mb, layouts, is_probed=True)
        batches = split(capture, sources, args.batches, args.seed)
    claim(settings.warehouse, cluster, f"capture {capture.meta.get('scenario', '')} {capture.meta.get('started_ms')}")
    # A session takes longer to start than most captures to replay.
    spark = None
    if needs_spark(settings.warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD)):
        spark = session_of(settings, "replay")
    create_tables(spark, settings.warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    for number, batch in enumerate(batches, 1):
        size = f"{count(len(batch.records), 'record')}, {count(len(batch.lines), 'line')}"
        say(f"batch {number:,} of {len(batches):,}: {size}")
        replay(spark, settings, cluster, capture.meta, batch)
    record_settings(spark, settings, cluster, capture.meta)
    analyze(spark, settings)
    say(f"done: {shown(settings.warehouse)}")
    return 0


def record_settings(spark: SparkSession | None, settings: Settings, cluster: str, meta: dict[str, Any]) -> None:
    """Append the capture's broker settings as a poll of the cluster would have observed them."""
    recorded = meta.get("broker_overrides") or {}
    seen = {
        "observed_at_ms": meta.get("started_ms") or 0,
        "source": "capture",
        "kind": "broker_settings",
        "settings": recorded,
    }
    if recorded:
        append(spark, settings.warehouse, NewRows.of(ADMIN_OBSERVATIONS, [_observation(cluster, 0, seen)]))


def split(capture: Capture, sources: Sequence[str], batches: int, seed: int | None) -> list[CaptureRecords]:
    """Return the capture as `batches` batches in order of time.

    With a `seed`, the batches of the log are in a random order. The order within a partition of `__consumer_offsets` is
    always kept, because Kafka guarantees it.
    """
    out = [CaptureRecords() for _ in range(batches)]
    if "offsets" in sources:
        for at, part in enumerate(_chunks(_in_time(capture.records()), batches)):
            out[at].records = sorted(part, key=lambda r: (r.partition, r.offset))
    if "log" in sources:
        order = list(range(batches))
        if seed is not None:
            Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
        for at, lines in zip(order, _chunks(list(capture.lines()), batches), strict=True):
            out[at].lines = lines
    if "admin" in sources:
        for at, seen in enumerate(_chunks(list(capture.observations()), batches)):
            out[at].observations = seen
    return out


def _in_time(records: list[SourceRecord]) -> list[SourceRecord]:
    """Sort records by time, but keep the offset order of each partition, in which timestamps may decrease."""
    newest: dict[int, int] = defaultdict(int)
    timed = []
    for record in records:
        newest[record.partition] = max(newest[record.partition], record.timestamp_ms)
        timed.append((newest[record.partition], record.partition, record.offset, record))
    return [entry[-1] for entry in sorted(timed, key=lambda entry: entry[:3])]


def _chunks(items: list[T], count: int) -> list[list[T]]:
    edges = [len(items) * i // count for i in range(count + 1)]
    return [items[a:b] for a, b in pairwise(edges)]


def replay(
    spark: SparkSession | None, settings: Settings, cluster: str, meta: dict[str, Any], batch: CaptureRecords
) -> None:
    """Append one batch to bronze and bring silver up to date. In local mode no session is needed."""
    found = bronze_of(batch, cluster, meta, settings.limits)
    new = {table: NewRows.of(table, found[table.name]) for table in BRONZE if found.get(table.name)}
    for rows in new.values():
        append(spark, settings.warehouse, rows)
    rebuild_new(spark, settings, new)


def bronze_of(batch: CaptureRecords, cluster: str, meta: dict[str, Any], limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Return the batch as bronze rows by table name."""
    rows: Rows = dict(bronze_rows(batch.records, cluster=cluster, log_epoch=0, limits=limits))
    time_zone, reader = zone(meta.get("log_time_zone") or "UTC"), layout(meta.get("log_pattern") or "default")
    lines = [PlacedLine(e.file, e.number, e.text, e.broker_id, e.is_oversized) for e in batch.lines]
    events, refused = line_rows(lines, cluster=cluster, layout=reader, zone=time_zone)
    rows[COORDINATOR_EVENTS.name] = events
    seen, pushed, unreadable = _observations(cluster, batch.observations)
    pods, unusable, _ = rows_of_lines(lines, cluster=cluster)
    rows[QUARANTINE.name] = [*rows.get(QUARANTINE.name, []), *refused, *unreadable, *unusable]
    rows[CLIENT_METRICS.name] = pushed
    rows[ADMIN_OBSERVATIONS.name] = [*seen, *pods]
    return rows


def _observations(
    cluster: str, lines: list[tuple[int, dict[str, Any] | Refused]]
) -> tuple[list[Row], list[Row], list[Row]]:
    """Return rows of `admin_observations`, of `client_metrics`, and of `quarantine` for what cannot be used."""
    seen, pushed, refused = [], [], []
    for number, body in lines:
        if isinstance(body, Refused):
            refused.append(_quarantined(cluster, number, *body))
            continue
        row = _observation(cluster, number, body)
        found: Row | datetime | Unreadable = (
            pushed_row(body) if row["kind"] == PUSHED else _dated(row["kind"], body, row["observed_at"])
        )
        if isinstance(found, Unreadable):
            refused.append(_quarantined(cluster, number, found.reason, found.detail, row["body"]))
        elif isinstance(found, datetime):
            seen.append(row | {"observed_at": found})
        else:
            pushed.append(found | {"cluster": cluster, "source_id": "admin.jsonl", "line_no": number})
    return seen, pushed, refused


def _dated(kind: str, body: dict[str, Any], observed_at: datetime) -> datetime | Unreadable:
    """Return the time of an observation: of marks and changes of pods, when they happened."""
    if kind == KIND:
        found = fact(body)
        return found.at if isinstance(found, PodFact) else found
    if kind != "mark":
        return observed_at
    announced = mark(body, observed_at)
    return announced if isinstance(announced, Unreadable) else announced.marked_at


def _quarantined(cluster: str, number: int, reason: QuarantineReason, detail: str, raw: str) -> Row:
    return {
        "cluster": cluster,
        "source": "admin.jsonl",
        "log_epoch": 0,
        "source_partition": -1,
        "source_offset": number,
        "reason": reason,
        "detail": detail,
        "raw_value": raw.encode("utf-8", "replace"),
    }


def _observation(cluster: str, number: int, seen: dict[str, Any]) -> dict[str, Any]:
    subject = seen.get("group_id") or seen.get("topic") or ""
    return {
        "cluster": cluster,
        "observed_at": datetime.fromtimestamp(seen.get("observed_at_ms", 0) / 1000, UTC),
        "source": seen.get("source") or "",
        "kind": seen.get("kind") or "",
        "subject": f"{subject}#{number}",
        "body": json.dumps(seen, separators=(",", ":")),
    }
