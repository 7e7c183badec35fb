"""Rows of `offset_commits` replaced by merged ones, hour by hour, while others write.

Nothing is lost of a batch that is written at the same time: only rows inside spans that `coverage` says were read are
replaced, and those were all there before, since a batch writes its coverage last. (`rebuild --quarantine`, which does
add rows inside such spans, and `maintain` wait for each other.) What comes between reading and writing lies outside
what is replaced. Streams skip the commit (`jobs.delta_io.follow`): what it holds they have read, or will read in the
commits that brought it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.conflicts import insist
from jobs.delta_io import checkpoint_path, table_path
from jobs.engine import connect, show
from pipelines.arrow_types import row_type
from pipelines.bronze_batch import TOPIC
from pipelines.run_merging import merged
from schemas.bronze import COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS, QUARANTINE

HOUR_MS = 3_600_000
MANY_HOURS = 24
PLACE = ("cluster", "log_epoch", "source_partition")
Place = tuple[str, int, int]
SETTLED_MS = HOUR_MS
"""An hour is merged so long after its end: what reading was late for has come by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Every commit up to `version` of the table has been looked at, for hours that begin before `until_ms`."""

    version: int = -1
    until_ms: int = 0

    @classmethod
    def of(cls, path: Path) -> Progress:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            # Everything is looked at again: merging what is merged changes nothing.
            return cls()

    def keep(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"version": self.version, "until_ms": self.until_ms}), encoding="utf-8")


def merge_runs(spark: SparkSession, warehouse: Path, *, now_ms: int | None = None) -> tuple[int, int]:
    """Merge what came since the last time; returns how many rows were looked at and how many they became."""
    path = table_path(warehouse, OFFSET_COMMITS)
    note = checkpoint_path(warehouse, "maintain") / "merged-runs.json"
    progress, version = Progress.of(note), DeltaTable(path).version()
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    until = max(progress.until_ms, (now_ms - SETTLED_MS) // HOUR_MS * HOUR_MS)
    before = after = 0
    hours = _hours(path, progress, version, until)
    covered = _covered(warehouse) if hours else {}
    for hour in hours:
        looked, became = _merge_hour(spark, warehouse, hour, covered)
        before, after = before + looked, after + became
    Progress(version=version, until_ms=until).keep(note)
    return before, after


def _hours(path: str, progress: Progress, version: int, until: int) -> list[int]:
    """The hours to look at: those that commits since touched, and those that were too young then."""
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


def _present(path: str) -> set[int]:
    """The hours that rows of the table are of: a file may hold the first hour and the last and none in between."""
    stored = DeltaTable(path).to_pyarrow_dataset()
    with connect() as engine:
        engine.register("stored", stored)
        found = engine.sql(
            f"SELECT DISTINCT epoch_ms(last_commit_at) // {HOUR_MS} * {HOUR_MS} FROM stored "  # noqa: S608 - a number
            "WHERE last_commit_at IS NOT NULL"
        ).fetchall()
    return {hour for (hour,) in found}


def _appended(path: str, after: int, upto: int) -> list[tuple[int, int]] | None:
    """Time of the first and of the last commit in each file that was appended; None where the log no longer tells."""
    spans = []
    for version in range(after + 1, upto + 1):
        log = Path(path, "_delta_log", f"{version:020}.json")
        if not log.exists():
            return None
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        if any("remove" in action for action in actions):
            continue
        for stated in (action["add"].get("stats") for action in actions if "add" in action):
            stats = json.loads(stated or "{}")
            if stats.get("numRecords") == 0:
                continue
            ends = [stats.get(side, {}).get("last_commit_at") for side in ("minValues", "maxValues")]
            if None in ends:
                # Either no row has a time, or nobody counted.
                if stats.get("nullCount", {}).get("last_commit_at") == stats.get("numRecords"):
                    continue
                return None
            first, last = (datetime.fromisoformat(end) for end in ends)
            spans.append((_ms(first), _ms(last)))
    return spans


def _merge_hour(spark: SparkSession, warehouse: Path, hour: int, covered: dict[Place, int]) -> tuple[int, int]:
    fragments = _read(warehouse, hour, covered)
    if not fragments.num_rows:
        return 0, 0
    with connect() as engine:
        engine.register("fragments", fragments)
        show(engine, "stored", warehouse, COORDINATOR_RECORDS)
        records = engine.sql(
            "SELECT cluster, log_epoch, source_partition, group_id, source_offset FROM stored WHERE source_offset "
            "BETWEEN (SELECT min(first_offset) FROM fragments) AND (SELECT max(last_offset) FROM fragments)"
        ).to_arrow_table()
        show(engine, "kept", warehouse, QUARANTINE)
        unread = engine.sql(
            "SELECT cluster, log_epoch, source_partition, source_offset FROM kept WHERE source = $1", params=[TOPIC]
        ).to_arrow_table()
        partitions = engine.sql("SELECT DISTINCT cluster, log_epoch, source_partition FROM fragments").fetchall()
    rows = merged(fragments, records, unread)
    if rows.num_rows < fragments.num_rows:
        replaced = [(*place, covered[place]) for place in partitions]
        frame = spark.createDataFrame(rows).coalesce(1)
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", _where(hour, replaced))
        path = table_path(warehouse, OFFSET_COMMITS)
        insist(path, lambda: writer.save(path), by_spark=True)
    return fragments.num_rows, rows.num_rows


def _covered(warehouse: Path) -> dict[Place, int]:
    """By (cluster, log_epoch, source_partition) one past the last offset read."""
    with connect() as engine:
        show(engine, "coverage", warehouse, COVERAGE)
        found = engine.execute(
            "SELECT cluster, log_epoch, source_partition, max(to_offset) FROM coverage WHERE source = ? AND NOT is_gap "
            "GROUP BY ALL",
            [TOPIC],
        ).fetchall()
    return {(cluster, epoch, partition): upto for cluster, epoch, partition, upto in found}


def _read(warehouse: Path, hour: int, covered: dict[Place, int]) -> pa.Table:
    spans = [dict(zip((*PLACE, "upto"), (*place, upto), strict=True)) for place, upto in covered.items()]
    names = ", ".join(f'stored."{name}"' for name in OFFSET_COMMITS.names)
    kind = pa.schema([*(row_type(COVERAGE).field(name) for name in PLACE), ("upto", pa.int64())])
    with connect() as engine:
        show(engine, "stored", warehouse, OFFSET_COMMITS, since=("last_commit_at", hour))
        engine.register("covered", pa.Table.from_pylist(spans, schema=kind))
        return engine.sql(
            f"SELECT {names} FROM stored JOIN covered USING (cluster, log_epoch, source_partition) "  # noqa: S608
            "WHERE last_offset < upto AND last_commit_at >= $1::TIMESTAMPTZ AND last_commit_at < $2::TIMESTAMPTZ",
            params=[_instant(hour), _instant(hour + HOUR_MS)],
        ).to_arrow_table()


def _where(hour: int, replaced: Iterable[tuple[str, int, int, int]]) -> str:
    """What is replaced, as Spark SQL."""
    spans = " OR ".join(
        f"(cluster = {_literal(c)} AND log_epoch = {e} AND source_partition = {p} AND last_offset < {upto})"
        for c, e, p, upto in sorted(replaced)
    )
    a, b = (f"TIMESTAMP '{_instant(at)}'" for at in (hour, hour + HOUR_MS))
    return f"last_commit_at >= {a} AND last_commit_at < {b} AND ({spans})"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _instant(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat()


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
