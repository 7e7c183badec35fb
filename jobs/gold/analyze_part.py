"""One part of the analysis: all groups whose silver rows changed, or the next of them in the order of their names.

The state of the analysis is cached next to the checkpoints. It only saves work: if it is lost or outdated, everything
is analyzed again with the same result.
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
from jobs.gold.bounded_part import fitting
from jobs.gold.cluster_patterns import update_cluster_patterns
from jobs.gold.gold_inputs import EARLIER_MS, TIME_COLUMNS, files_of, gold_stored
from jobs.gold.replaying import Replaying, ReplayingPool, gold_here
from jobs.gold.storms import update_storms
from jobs.tables.ask import ask
from jobs.tables.changed_rows import GoneError, TableSnapshot, changed_groups, snapshot
from jobs.tables.delta_io import checkpoint_path, read, required
from jobs.tables.disk.durability import write_whole
from jobs.tables.location import is_elsewhere
from jobs.tables.replace import replace_rows
from jobs.tables.silver_rows import rows
from pipelines.gold.advice.advice import SavingThreshold
from pipelines.gold.frame import gold
from pipelines.gold.groups import INPUTS, TIMES, Group, Known
from pipelines.gold.marks_nearby import announced, groups_of
from pipelines.gold.pod_ends import SLACK_MS, pod_digests, pod_index
from pipelines.gold.rows import AnalysisConfig
from pipelines.rows_of_tables import rows_of
from schemas.bronze import ADMIN_OBSERVATIONS
from schemas.gold import DEPLOYS, DIAGNOSES, GROUP_HEALTH, GROUP_TABLES, MARKS, VERDICTS
from schemas.rows import MarkRow
from schemas.silver import GENERATIONS, GROUP_EVENTS, GROUPS
from schemas.states import GroupEventKind, MarkKind
from schemas.tables import Table
from schemas.thresholds import HOUR_MS, MARK_MS, MINUTE_MS

EVERYTHING = 0
Scope = dict[Group, int]
"""The timestamp of each group's earliest change, in ms since the epoch."""

Change = tuple[Group, int]

MarkKey = tuple[str, int, str | None, str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """The number of groups that were analyzed, and of changed groups that remain."""

    analysed: int
    left: int


def analyze_part(
    spark: SparkSession | None,
    settings: Settings,
    *,
    tables: Sequence[Table] = GROUP_TABLES,
    most: int | None = None,
    most_rows: int | None = None,
    reading: AbstractContextManager[object] | None = None,
    replaying: Replaying | ReplayingPool | None = None,
    with_storms: bool = True,
    again: bool = False,
) -> Part:
    """Analyze `most` of the changed groups, those after the previous part's. All tables must exist.

    Parts go through the groups in the order of their names, and begin again after the last one. So a group waits at
    most until all others were analyzed once, and the groups of a part are near each other in the files.

    With `most_rows`, a part has at least one group, and otherwise only as many groups as have about `most_rows` rows of
    gold since their changes.

    Only rows of `tables` are made, and these tables have their own cached state. Silver does not change while `reading`
    is held; afterwards, silver is read in the versions of that time. With `replaying`, rows are made in its processes;
    without `replaying` and without a session, which only local mode allows, in this process. Without `with_storms`,
    `storms` and `cluster_patterns` are not updated.
    """
    warehouse = settings.warehouse
    memory = analysed_path(warehouse, tables)
    config = AnalysisConfig(
        quiet_ms=settings.quiet_ms,
        worth=SavingThreshold(seconds=settings.worth_resource_seconds, ratio=settings.worth_ratio),
    )
    with reading or nullcontext():
        known = _known(warehouse)
        snapshots = {t.name: snapshot(warehouse, t) for t in INPUTS}
        now = {
            "snapshots": snapshots,
            "settings": {"observed": known.observed, "terms": asdict(config), "tables": sorted(TIME_COLUMNS)},
            "until_ms": known.until_ms,
            "marks": [list(mark) for mark in _listed(known)],
            "pods": known.pod_digests,
        }
        if with_storms:
            update_storms(spark, settings, again=again)
            update_cluster_patterns(spark, warehouse)
    before = _remembered(memory)
    is_new = again or before is None or before["settings"] != json.loads(json.dumps(now["settings"]))
    changes = _all(warehouse) if is_new or before is None else _affected(warehouse, before, snapshots, known, tables)
    scope = _waiting(None if is_new else before, changes)
    if most_rows is None:
        part = dict(islice(scope.items(), most))
    else:
        part = fitting(spark, warehouse, scope, most_rows) if scope else {}
    after = next(reversed(part), None)
    if part and (replaying or spark is None):
        make = replaying.gold if replaying else gold_here
        new = make(files_of(snapshots), part, known, config, tables)
        _replace(spark, warehouse, gold_stored(warehouse, part, tables), new)
    elif part:
        silver = {t: read(required(spark), warehouse, t, snapshots[t.name].version) for t in INPUTS}
        _rebuild(required(spark), warehouse, silver, part, known, config, tables)
    left = [[*group, at] for group, at in scope.items() if group not in part]
    # A crash before this analyzes these groups again, with the same result.
    write_whole(memory, json.dumps(now | {"left": left, "after": after}))
    return Part(analysed=len(part), left=len(left))


def analysed_path(warehouse: Path, tables: Sequence[Table] = GROUP_TABLES) -> Path:
    """Return the path of the cached state for these tables."""
    names = "-".join(["analysed", *(() if tables == GROUP_TABLES else (table.name for table in tables))])
    return checkpoint_path(warehouse, "analyze") / f"{names}.json"


def _rebuild(
    spark: SparkSession,
    warehouse: Path,
    silver: Mapping[Table, DataFrame],
    scope: Scope,
    known: Known,
    config: AnalysisConfig,
    tables: Sequence[Table],
) -> None:
    starts_at = [(cluster, group, since) for (cluster, group), since in sorted(scope.items())]
    since_rows = spark.createDataFrame(starts_at, "cluster STRING, group_id STRING, since_ms BIGINT")
    since = since_rows.select("cluster", "group_id", F.timestamp_millis("since_ms").alias("since_at"))
    found = gold(silver, since, known, config, tables).toArrow()
    old = {}
    for table in tables:
        first = F.timestamp_millis(F.col("since_ms") - EARLIER_MS.get(table.name, 0))
        day = F.date_trunc("DAY", first).alias("from_at")
        starts = F.broadcast(since_rows.select("cluster", "group_id", day))
        stored = read(spark, warehouse, table).join(starts, ["cluster", "group_id"])
        old[table] = stored.where(F.col(TIME_COLUMNS[table.name]) >= F.col("from_at")).select(*table.names).toArrow()
    _replace(spark, warehouse, old, {table: rows_of(found, table) for table in tables})


def _replace(
    spark: SparkSession | None, warehouse: Path, old: Mapping[Table, pa.Table], new: Mapping[Table, pa.Table]
) -> None:
    for table in old:
        replace_rows(spark, warehouse, table, old[table], new[table])


def _known(warehouse: Path) -> Known:
    until: dict[str, int] = {}
    for row in rows(warehouse, GROUPS, ("cluster", "last_record_at")):
        if (at := row["last_record_at"]) is not None:
            until[row["cluster"]] = max(at, until.get(row["cluster"], at))
    marks: dict[str, list[MarkRow]] = {}
    for mark in cast("list[MarkRow]", rows(warehouse, MARKS, MARKS.names)):
        marks.setdefault(mark["cluster"], []).append(mark)
    return Known(
        observed=_broker_settings(warehouse),
        until_ms=until,
        marks={cluster: announced(mine) for cluster, mine in marks.items()},
        pods={cluster: pod_index(mine) for cluster, mine in marks.items()},
        pod_digests={cluster: pod_digests(mine) for cluster, mine in marks.items()},
    )


def _listed(known: Known) -> list[MarkKey]:
    """Return every mark as cluster, timestamp, group, kind, text: one per group, or None for the whole cluster."""
    return [
        (m["cluster"], m["marked_at"], group, m["kind"], m["text"])
        for marks in known.marks.values()
        for m in marks
        for group in groups_of(m) or (None,)
    ]


def _broker_settings(warehouse: Path) -> dict[str, dict[str, Any]]:
    """Return the last observed broker settings by cluster. The brokers of a cluster are assumed to agree."""
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
    # The format of an earlier version of Regroup is ignored.
    return found if "snapshots" in found else None


def _waiting(before: Mapping[str, Any] | None, changes: Iterable[Change]) -> Scope:
    """Return the groups that remain and those that changed since, by name, beginning after the previous part's last."""
    scope = {(cluster, group): at for cluster, group, at in before["left"]} if before else {}
    for group, at in changes:
        scope[group] = min(at, scope.get(group, at))
    after = tuple(before.get("after") or ()) if before else ()
    return {group: scope[group] for group in sorted(scope, key=lambda group: (group <= after, group))}


def _all(warehouse: Path) -> Iterator[Change]:
    if is_elsewhere(warehouse):
        groups = ask(warehouse, "SELECT DISTINCT cluster, group_id FROM {generations}", (GENERATIONS,))
        yield from (((row["cluster"], row["group_id"]), EVERYTHING) for row in groups.to_pylist())
        return
    for row in rows(warehouse, GENERATIONS, ("cluster", "group_id")):
        yield (row["cluster"], row["group_id"]), EVERYTHING


def _affected(
    warehouse: Path,
    before: Mapping[str, Any],
    snapshots: Mapping[str, TableSnapshot],
    known: Known,
    tables: Sequence[Table],
) -> Iterator[Change]:
    """Yield groups with changed silver rows.

    For health, also groups with an hour that now extends further. For diagnoses, verdicts and deploys, also groups that
    changed marks concern. For all tables but health, also groups that rebalanced after changed reports of pods.
    """
    if GROUP_HEALTH in tables:
        yield from _open_hours(warehouse, before["until_ms"], known.until_ms)
    if not {DIAGNOSES, VERDICTS, DEPLOYS}.isdisjoint(tables):
        changed = {cast("MarkKey", tuple(mark)) for mark in before.get("marks", ())} ^ set(_listed(known))
        yield from _near_marks(warehouse, changed)
        if DEPLOYS in tables:
            yield from _named_by_deploys(warehouse, changed)
    if set(tables) - {GROUP_HEALTH}:
        yield from _after_pods(warehouse, before.get("pods") or {}, known.pod_digests)
    for table in INPUTS:
        try:
            then = TableSnapshot(*before["snapshots"][table.name])
            changes = changed_groups(warehouse, table, table.names, TIMES[table.name], then, snapshots[table.name])
        except GoneError:
            yield from _all(warehouse)
            return
        for cluster, group_id, at in changes:
            yield (cluster, group_id), at


def _near_marks(warehouse: Path, marks: Collection[MarkKey]) -> Iterator[Change]:
    """Yield groups that rebalanced, or got a static member back, soon after a mark about them or their cluster."""
    if not marks:
        return
    about: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for cluster, at, group, *_ in sorted(marks, key=lambda mark: mark[1]):
        about[cluster, group].append(at)
    for cluster, name, joined in _moments(warehouse, min(at for _, at, *_ in marks)):
        for timestamps in (about.get((cluster, None), ()), about.get((cluster, name), ())):
            # The earliest suffices, because a group is analyzed from that time on.
            first = bisect_left(timestamps, joined - MARK_MS)
            if first < len(timestamps) and timestamps[first] <= joined:
                yield (cluster, name), timestamps[first]


def _named_by_deploys(warehouse: Path, marks: Iterable[MarkKey]) -> Iterator[Change]:
    """Yield known groups that a deploy's mark names. They get a row although nothing may have happened to them."""
    named = {(cluster, group): at for cluster, at, group, kind, _ in sorted(marks, key=lambda mark: -mark[1])
             if group is not None and kind == MarkKind.DEPLOY}  # fmt: skip
    if named:
        for row in rows(warehouse, GROUPS, ("cluster", "group_id")):
            group = row["cluster"], row["group_id"]
            if group in named:
                yield group, named[group]


def _after_pods(
    warehouse: Path, before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> Iterator[Change]:
    """Yield groups of clusters with changed reports of pods, with their first rebalance or static return since then.

    Any of these may have members in that pod, and a late report of a pod's start or address joins all its later ends.
    """
    since: dict[str, int] = {}
    for cluster in before.keys() | now.keys():
        old, new = before.get(cluster, {}), now.get(cluster, {})
        changed = [int(minute) for minute in old.keys() | new.keys() if old.get(minute) != new.get(minute)]
        if changed:
            since[cluster] = min(changed) * MINUTE_MS - SLACK_MS
    if not since:
        return
    first: dict[Group, int] = {}
    for cluster, name, at in _moments(warehouse, min(since.values())):
        if cluster in since and at >= since[cluster]:
            first[cluster, name] = min(at, first.get((cluster, name), at))
    yield from first.items()


def _moments(warehouse: Path, since_ms: int) -> Iterator[tuple[str, str, int]]:
    """Yield cluster, group and time in milliseconds of each rebalance and each static return since `since_ms`."""
    for row in rows(warehouse, GENERATIONS, ("cluster", "group_id", "joined_at"), since=("joined_at", since_ms)):
        yield row["cluster"], row["group_id"], row["joined_at"]
    names = ("cluster", "group_id", "event_at", "kind")
    for row in rows(warehouse, GROUP_EVENTS, names, since=("event_at", since_ms)):
        if row["kind"] == GroupEventKind.STATIC_RETURNED:
            yield row["cluster"], row["group_id"], row["event_at"]


def _open_hours(warehouse: Path, before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[Change]:
    """Yield groups with an hour that was incomplete when it was analyzed, if more of it is known now."""
    since = None
    if is_elsewhere(warehouse):
        # Spark then returns no older rows.
        since = "hour_at", min((before.get(cluster, 0) for cluster in now), default=0) - HOUR_MS
    for row in rows(warehouse, GROUP_HEALTH, ("cluster", "group_id", "hour_at"), since=since):
        known = before.get(row["cluster"], 0)
        if row["hour_at"] + HOUR_MS > known and now.get(row["cluster"], 0) > known:
            yield (row["cluster"], row["group_id"]), row["hour_at"]
