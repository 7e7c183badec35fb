"""Replaces rows of `offset_commits` by merged rows, hour by hour, while others write.

Batches that are written at the same time lose nothing. Only rows inside spans of `coverage` are replaced, and these are
complete, because a batch writes its coverage last. (`rebuild --quarantine` does add rows inside such spans, so it and
`maintain` exclude each other.) Rows that arrive between reading and writing are outside the replaced spans. Streams
skip the commit (`jobs.tables.delta_io.follow`): they have read its rows, or will read them in the original commits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import SparkSession

from dashboards.lake.lake import moment
from dashboards.lake.sql_names import literal
from jobs.processes.worker_process import WorkerProcess
from jobs.retention.merged_hour import (
    HOUR_MS,
    PARTITION,
    ReadUntil,
    Replaced,
    TopicPartition,
    merged_files,
    merged_hour,
)
from jobs.tables import named_tables
from jobs.tables.append import overwrite_frame
from jobs.tables.changed_rows import snapshot
from jobs.tables.delta_io import checkpoint_path
from jobs.tables.disk.durability import write_whole
from jobs.tables.engine import connect, show
from jobs.tables.local_rewrite import exchange
from jobs.tables.paths import TableName, actions, table_path
from jobs.tables.silver_rows import newest
from jobs.tables.transactions import is_local
from schemas.bronze import COVERAGE, OFFSET_COMMITS
from schemas.records import OFFSETS_TOPIC
from schemas.thresholds import DAY_MS

MANY_HOURS = 24
SETTLED_MS = HOUR_MS
"""Time in ms after the end of an hour until it is merged. Late batches of the hour have arrived by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of merging: all commits up to `version` of the table, for hours that begin before `until_ms`."""

    version: int = -1
    until_ms: int = 0

    @classmethod
    def of(cls, path: Path) -> Progress:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            # Start over: merging rows that are already merged changes nothing.
            return cls()

    def keep(self, path: Path) -> None:
        write_whole(path, json.dumps({"version": self.version, "until_ms": self.until_ms}))


def merge_runs(spark: SparkSession, warehouse: Path, *, now_ms: int | None = None) -> tuple[int, int]:
    """Merge the rows since the last run; return the rows of the checked hours before and after."""
    path = table_path(warehouse, OFFSET_COMMITS)
    note = checkpoint_path(warehouse, "maintain") / "merged-runs.json"
    progress, version = Progress.of(note), snapshot(warehouse, OFFSET_COMMITS).version
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    until = max(progress.until_ms, (now_ms - SETTLED_MS) // HOUR_MS * HOUR_MS)
    hours = _hours(path, progress, version, until)
    merged = _merged(spark, warehouse, hours) if hours else []
    Progress(version=version, until_ms=until).keep(note)
    return sum(rows_read for rows_read, _ in merged), sum(became for _, became in merged)


def _merged(spark: SparkSession, warehouse: Path, hours: Iterable[int]) -> list[tuple[int, int]]:
    read_until = _read_until(warehouse)
    if is_local(table_path(warehouse, OFFSET_COMMITS)):
        return list(_merged_by_worker(warehouse, hours, read_until))
    return [_merged_by_spark(spark, warehouse, hour, read_until) for hour in hours]


def _hours(path: str, progress: Progress, version: int, until: int) -> list[int]:
    """Return the hours to check: those with newer commits, and those that were too recent last time."""
    if isinstance(path, TableName):
        return _hours_by_spark(path, progress, until)
    spans = _appended(path, progress.version, version)
    if spans is None:
        files = pa.table(DeltaTable(path).get_add_actions(flatten=True))
        columns = [f"{end}.last_commit_at" for end in ("min", "max")]
        if not set(columns) <= set(files.column_names):
            return []
        spans = [(_ms(a), _ms(b)) for a, b in zip(*(files[c].to_pylist() for c in columns), strict=True) if a and b]
    elif progress.version >= 0:
        spans.append((progress.until_ms, until))
    hours = {hour for a, b in spans for hour in range(a // HOUR_MS * HOUR_MS, min(b + 1, until), HOUR_MS)}
    return sorted(hours & _present(path) if len(hours) > MANY_HOURS else hours)


def _hours_by_spark(name: TableName, progress: Progress, until: int) -> list[int]:
    """Return the hours with rows since a day before the last run. Rows that arrive later still are not merged."""
    at = "unix_millis(last_commit_at)"
    query = (
        f"SELECT DISTINCT {at} DIV {HOUR_MS} * {HOUR_MS} AS hour FROM {{offset_commits}} "  # noqa: S608 - our own names
        f"WHERE {at} >= {progress.until_ms - DAY_MS:d} AND {at} < {until:d}"
    )
    return sorted(named_tables.ask(query, {OFFSET_COMMITS.name: name})["hour"].to_pylist())


def _present(path: str) -> set[int]:
    """Return the hours of the table's rows. A file may contain the first and the last hour and none in between."""
    with connect() as engine:
        engine.register("stored", newest(path, OFFSET_COMMITS))
        found = engine.sql(
            f"SELECT DISTINCT epoch_ms(last_commit_at) // {HOUR_MS} * {HOUR_MS} FROM stored "  # noqa: S608 - a number
            "WHERE last_commit_at IS NOT NULL"
        ).fetchall()
    return {hour for (hour,) in found}


def _appended(path: str, after: int, upto: int) -> list[tuple[int, int]] | None:
    """Return the first and last commit time of each appended file, in ms; None if the log lacks a version."""
    spans = []
    for version in range(after + 1, upto + 1):
        if (commit := actions(path, version)) is None:
            return None
        if any("remove" in action for action in commit):
            continue
        for stats_json in (action["add"].get("stats") for action in commit if "add" in action):
            stats = json.loads(stats_json or "{}")
            if stats.get("numRecords") == 0:
                continue
            ends = [stats.get(side, {}).get("last_commit_at") for side in ("minValues", "maxValues")]
            if None in ends:
                # Either no row has a time, or the file has no statistics.
                if stats.get("nullCount", {}).get("last_commit_at") == stats.get("numRecords"):
                    continue
                return None
            first, last = (datetime.fromisoformat(end) for end in ends)
            spans.append((_ms(first), _ms(last)))
    return spans


def _merged_by_worker(warehouse: Path, hours: Iterable[int], read_until: ReadUntil) -> Iterator[tuple[int, int]]:
    """Merge in a worker process with low priority. Batches wait only for the commits."""
    with WorkerProcess(merged_files) as worker:
        for hour in hours:
            found: Replaced = worker.ask(warehouse, hour, read_until)
            if found.gone and not exchange(table_path(warehouse, OFFSET_COMMITS), found.gone, found.come):
                raise CommitFailedError("other files hold the rows now")
            yield found.rows_read, found.became


def _merged_by_spark(spark: SparkSession, warehouse: Path, hour: int, read_until: ReadUntil) -> tuple[int, int]:
    rows_read, rows = merged_hour(warehouse, hour, read_until)
    if rows.num_rows < rows_read:
        partitions = rows.select(PARTITION).group_by(PARTITION).aggregate([]).to_pylist()
        where = _where(
            hour, {partition: read_until[partition] for partition in (tuple(row.values()) for row in partitions)}
        )
        overwrite_frame(lambda: spark.createDataFrame(rows).coalesce(1), warehouse, OFFSET_COMMITS, where)
    return rows_read, rows.num_rows


def _read_until(warehouse: Path) -> dict[TopicPartition, int]:
    """Return for each (cluster, log_epoch, source_partition) the offset after the last one read."""
    with connect() as engine:
        columns = ("cluster", "source", "log_epoch", "source_partition", "to_offset", "is_gap")
        show(engine, "coverage", warehouse, COVERAGE, columns=columns, where=f"source = '{OFFSETS_TOPIC}'")
        found = engine.execute(
            "SELECT cluster, log_epoch, source_partition, max(to_offset) FROM coverage WHERE source = ? AND NOT is_gap "
            "GROUP BY ALL",
            [OFFSETS_TOPIC],
        ).fetchall()
    return {(cluster, epoch, partition): upto for cluster, epoch, partition, upto in found}


def _where(hour: int, replaced: Mapping[TopicPartition, int]) -> str:
    """Return the condition for the rows to replace, in Spark SQL."""
    spans = " OR ".join(
        f"(cluster = {literal(c)} AND log_epoch = {e} AND source_partition = {p} AND last_offset < {upto})"
        for (c, e, p), upto in sorted(replaced.items())
    )
    a, b = (f"TIMESTAMP '{moment(at).isoformat()}'" for at in (hour, hour + HOUR_MS))
    return f"last_commit_at >= {a} AND last_commit_at < {b} AND ({spans})"


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
