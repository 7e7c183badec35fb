"""One part of gold: the groups whose silver rows changed, all of them or those that have waited longest.

What has been analysed is remembered beside the checkpoints; it only saves work. Lost or out of date, everything is
analysed again, and the same rows come out.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.config.settings import Settings
from jobs.gold.gold_inputs import PLACES, files_of, gold_stored
from jobs.gold.replaying import Replaying
from jobs.gold.storms import update_storms
from jobs.tables.as_of import opened
from jobs.tables.changed_rows import GoneError, TableSnapshot, changed
from jobs.tables.delta_io import checkpoint_path, read, table_path
from jobs.tables.replace import replace_rows
from jobs.tables.silver_rows import rows
from pipelines.gold.advice.advice import SavingThreshold
from pipelines.gold.frame import gold
from pipelines.gold.groups import INPUTS, TIMES, Group, Known
from pipelines.gold.marks_nearby import MARK_MS
from pipelines.gold.rows import AnalysisConfig
from pipelines.rows_of_tables import rows_of
from schemas.bronze import ADMIN_OBSERVATIONS
from schemas.gold import DIAGNOSES, GROUP_HEALTH, GROUP_TABLES, MARKS
from schemas.rows import MarkRow
from schemas.silver import GENERATIONS, GROUPS
from schemas.tables import Table
from schemas.thresholds import HOUR_MS

EVERYTHING = 0
Scope = dict[Group, int]
"""Milliseconds since the epoch of each group's earliest change."""

Change = tuple[Group, int]

Announced = tuple[str, int, str | None, str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """How many groups were analysed, and how many that changed are still to be."""

    analysed: int
    left: int


def analyze_part(
    spark: SparkSession,
    settings: Settings,
    *,
    tables: Sequence[Table] = GROUP_TABLES,
    most: int | None = None,
    reading: AbstractContextManager[object] | None = None,
    replaying: Replaying | None = None,
    with_storms: bool = True,
    again: bool = False,
) -> Part:
    """Analyse `most` of the groups that changed, those first that have waited longest; all tables are there.

    Rows are made of `tables`, of which it is remembered apart what was analysed. Silver does not change while `reading`
    is entered; it is read afterwards as it was then. With `replaying` that is done without Spark. Without `with_storms`
    somebody else keeps `storms`.
    """
    warehouse = settings.warehouse
    memory = analysed_path(warehouse, tables)
    terms = AnalysisConfig(
        quiet_ms=settings.quiet_ms,
        worth=SavingThreshold(seconds=settings.worth_resource_seconds, ratio=settings.worth_ratio),
    )
    with reading or nullcontext():
        known = _known(warehouse)
        versions = {t: opened(warehouse, t) for t in INPUTS}
        standing = {t.name: TableSnapshot.of(version) for t, version in versions.items()}
        now = {
            "standing": standing,
            "told": {"observed": known.observed, "terms": asdict(terms), "tables": sorted(PLACES)},
            "until_ms": known.until_ms,
            "marks": [list(mark) for mark in _listed(known)],
        }
        if with_storms:
            update_storms(spark, settings, again=again)
    before = _remembered(memory)
    is_new = again or before is None or before["told"] != json.loads(json.dumps(now["told"]))
    changes = _all(warehouse) if is_new or before is None else _touched(warehouse, before, standing, known, tables)
    scope = _waiting(None if is_new else before, changes)
    part = dict(islice(scope.items(), most))
    if part and replaying:
        new = replaying.gold(files_of(warehouse, versions), part, known, terms, tables)
        _replace(spark, warehouse, gold_stored(warehouse, part, tables), new)
    elif part:
        silver = {t: read(spark, warehouse, t, version.version()) for t, version in versions.items()}
        _rebuild(spark, warehouse, silver, part, known, terms, tables)
    left = [[*group, at] for group, at in scope.items() if group not in part]
    memory.parent.mkdir(parents=True, exist_ok=True)
    # Replaced in one step: a crash in between analyses these groups again, which changes nothing.
    next_one = memory.with_suffix(".part")
    next_one.write_text(json.dumps(now | {"left": left}), encoding="utf-8")
    next_one.replace(memory)
    return Part(analysed=len(part), left=len(left))


def analysed_path(warehouse: Path, tables: Sequence[Table] = GROUP_TABLES) -> Path:
    """Where it is remembered for which groups rows of these tables were made."""
    names = "-".join(["analysed", *(() if tables == GROUP_TABLES else (table.name for table in tables))])
    return checkpoint_path(warehouse, "analyze") / f"{names}.json"


def _rebuild(
    spark: SparkSession,
    warehouse: Path,
    silver: Mapping[Table, DataFrame],
    scope: Scope,
    known: Known,
    terms: AnalysisConfig,
    tables: Sequence[Table],
) -> None:
    starts_at = [(cluster, group, since) for (cluster, group), since in sorted(scope.items())]
    told = spark.createDataFrame(starts_at, "cluster STRING, group_id STRING, since_ms BIGINT")
    since = told.select("cluster", "group_id", F.timestamp_millis("since_ms").alias("since_at"))
    found = gold(silver, since, known, terms, tables).toArrow()
    day = F.date_trunc("DAY", "since_at").alias("from_at")
    starts = F.broadcast(since.select("cluster", "group_id", day))
    old = {}
    for table in tables:
        stored = read(spark, warehouse, table).join(starts, ["cluster", "group_id"])
        old[table] = stored.where(F.col(PLACES[table.name]) >= F.col("from_at")).select(*table.names).toArrow()
    _replace(spark, warehouse, old, {table: rows_of(found, table) for table in tables})


def _replace(
    spark: SparkSession, warehouse: Path, old: Mapping[Table, pa.Table], new: Mapping[Table, pa.Table]
) -> None:
    for table in old:
        replace_rows(spark, old[table], new[table], table_path(warehouse, table), table)


def _known(warehouse: Path) -> Known:
    until: dict[str, int] = {}
    for row in rows(warehouse, GROUPS, ("cluster", "last_record_at")):
        if (at := row["last_record_at"]) is not None:
            until[row["cluster"]] = max(at, until.get(row["cluster"], at))
    marks: dict[str, list[MarkRow]] = {}
    for mark in cast("list[MarkRow]", rows(warehouse, MARKS, MARKS.names)):
        marks.setdefault(mark["cluster"], []).append(mark)
    return Known(observed=_broker_settings(warehouse), until_ms=until, marks=marks)


def _listed(known: Known) -> list[Announced]:
    """Every mark: cluster, instant, group or None, kind, text."""
    return [
        (m["cluster"], m["marked_at"], m["group_id"], m["kind"], m["text"])
        for marks in known.marks.values()
        for m in marks
    ]


def _broker_settings(warehouse: Path) -> dict[str, dict[str, Any]]:
    """By cluster, as observed last; brokers of a cluster are taken to agree."""
    columns = ("cluster", "observed_at", "subject", "body")
    seen = rows(warehouse, ADMIN_OBSERVATIONS, columns, where=pc.field("kind") == "broker_settings")
    out: dict[str, dict[str, Any]] = {}
    for row in sorted(seen, key=lambda r: (r["observed_at"], r["subject"])):
        out.setdefault(row["cluster"], {}).update(json.loads(row["body"]).get("settings") or {})
    return out


def _remembered(memory: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(memory.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    # An earlier Regroup remembered something else.
    return found if "standing" in found else None


def _waiting(before: Mapping[str, Any] | None, changes: Iterable[Change]) -> Scope:
    """Who was left then, in that order, and who changed since."""
    scope = {(cluster, group): at for cluster, group, at in before["left"]} if before else {}
    for group, at in changes:
        scope[group] = min(at, scope.get(group, at))
    return scope


def _all(warehouse: Path) -> Iterator[Change]:
    for row in rows(warehouse, GENERATIONS, ("cluster", "group_id")):
        yield (row["cluster"], row["group_id"]), EVERYTHING


def _touched(
    warehouse: Path,
    before: Mapping[str, Any],
    standing: Mapping[str, TableSnapshot],
    known: Known,
    tables: Sequence[Table],
) -> Iterator[Change]:
    """Groups with other silver rows; for health those with an hour that goes further now, for diagnoses those that
    other marks are about.
    """
    if GROUP_HEALTH in tables:
        yield from _open_hours(warehouse, before["until_ms"], known.until_ms)
    if DIAGNOSES in tables:
        yield from _announced(warehouse, {tuple(mark) for mark in before.get("marks", ())} ^ set(_listed(known)))
    for table in INPUTS:
        try:
            then = TableSnapshot(*before["standing"][table.name])
            changes = changed(table.names, TIMES[table.name], then, standing[table.name])
        except GoneError:
            yield from _all(warehouse)
            return
        for cluster, group_id, at in changes:
            yield (cluster, group_id), at


def _announced(warehouse: Path, marks: Collection[Announced]) -> Iterator[Change]:
    """Groups that rebalanced shortly after one of these marks, which is about them or their whole cluster."""
    if not marks:
        return
    about: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for cluster, at, group, *_ in sorted(marks, key=lambda mark: mark[1]):
        about[cluster, group].append(at)
    since = ("joined_at", min(at for _, at, *_ in marks))
    for row in rows(warehouse, GENERATIONS, ("cluster", "group_id", "joined_at"), since=since):
        cluster, name, joined = row["cluster"], row["group_id"], row["joined_at"]
        for instants in (about.get((cluster, None), ()), about.get((cluster, name), ())):
            # The earliest is enough: a group is looked at again from then on.
            first = bisect_left(instants, joined - MARK_MS)
            if first < len(instants) and instants[first] <= joined:
                yield (cluster, name), instants[first]


def _open_hours(warehouse: Path, before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[Change]:
    """Groups with an hour that went beyond what was known when it was analysed, where more is known since."""
    for row in rows(warehouse, GROUP_HEALTH, ("cluster", "group_id", "hour_at")):
        known = before.get(row["cluster"], 0)
        if row["hour_at"] + HOUR_MS > known and now.get(row["cluster"], 0) > known:
            yield (row["cluster"], row["group_id"]), row["hour_at"]
