"""Updates `storms` from silver. It runs often within `up`, so it scans only the changes."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from dashboards.lake.lake import milliseconds
from jobs.config.settings import Settings
from jobs.gold.storm_causes import AT_ONCE
from jobs.gold.storm_facts import facts
from jobs.gold.storm_memory import SCHEMA, Group, Memory, Snapshots, disturbances_of
from jobs.gold.storm_silver import silver_of_storms
from jobs.spark.spark import for_few_rows
from jobs.tables.as_of import version_of
from jobs.tables.changed_rows import GoneError, changed_groups, snapshot
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path, read
from jobs.tables.location import is_elsewhere
from jobs.tables.named_tables import not_before
from jobs.tables.replace import replace_rows
from jobs.tables.silver_rows import among, rows, stored_rows
from pipelines.arrow_types import stored
from pipelines.gold.groups import TIMES
from pipelines.gold.marks_nearby import announced, in_order
from pipelines.gold.pod_ends import SLACK_MS, pod_index
from pipelines.gold.storms.disturbances import MEMORY_MS, WINDOW_MS, Disturbance, disturbances
from pipelines.gold.storms.frame import disturbances_of_groups
from pipelines.gold.storms.incremental import StormScan
from pipelines.gold.storms.storm_rows import described_again, is_described, storm_row
from pipelines.gold.storms.storms import Storm
from schemas.gold import MARKS, STORMS
from schemas.rows import GenerationRow, GroupEventRow, MarkRow, StormRow
from schemas.silver import GENERATIONS, GROUP_EVENTS, GROUPS
from schemas.states import PodChange
from schemas.thresholds import HOUR_MS, MARK_MS

COLUMNS = {
    GENERATIONS: (
        "cluster", "group_id", "incarnation", "generation_id", "prepared_at", "joined_at", "synced_at", "group_type",
        "group_protocol", "rebalance_mode", "trigger", "trigger_evidence", "trigger_member_id", "is_empty",
        "member_count", "skipped_generations", "coordinator_id", "folded_count",
    ),
    GROUP_EVENTS: (
        "cluster", "group_id", "event_at", "kind", "member_id", "incarnation", "group_instance_id", "client_id",
        "client_host", "generation_id", "detail", "evidence",
    ),
}  # fmt: skip
EARLIER_MS = HOUR_MS
"""Longest time in ms between an event and the generation that it affects, because join phases are long."""

RECENT_MS = HOUR_MS
"""Time in ms in which a storm may still end without new events."""

Known = Mapping[Group, tuple[int, int]]
"""For each group, when it was first seen, and its last record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """The old and new rows of `storms` from one scan, and the cache to save after they are stored."""

    old: Sequence[StormRow]
    new: Sequence[StormRow]
    memory: Memory | None


def update_storms(spark: SparkSession | None, settings: Settings, *, again: bool = False) -> None:
    """Update the table `storms` from silver. If nothing changed, nothing is written.

    The result depends only on silver, not on earlier calls. With `again`, all silver is scanned, as after a rebuild.
    """
    warehouse = settings.warehouse
    create_tables(spark, warehouse, (STORMS,))
    store(spark, warehouse, scan(warehouse, again=again))


def store(spark: SparkSession | None, warehouse: Path, found: Update) -> None:
    """Write the result of `scan`, then save its cache."""
    old, new = stored(found.old, STORMS), stored(found.new, STORMS)
    replace_rows(spark and for_few_rows(spark), warehouse, STORMS, old, new)
    if found.memory is not None:
        found.memory.save(memory_path(warehouse))


def scan(warehouse: Path, *, again: bool = False) -> Update:
    """Return the changes to the stored storms that follow from silver."""
    before = Memory.empty() if again else Memory.of(memory_path(warehouse))
    snapshots = {table.name: snapshot(warehouse, table) for table in COLUMNS}
    known = _known(warehouse)
    since = _changed(warehouse, before, snapshots, known)
    memory = before.with_new(snapshots, since, _disturbances(warehouse, since))
    all_rows = cast("list[StormRow]", rows(warehouse, STORMS, STORMS.names))
    old: list[StormRow] = []
    new: list[StormRow] = []
    kept: dict[str, int] = {}
    for cluster in sorted({cluster for cluster, _ in known}):
        mine = [row for row in all_rows if row["cluster"] == cluster]
        changes = {group: at for (name, group), at in since.items() if name == cluster}
        storm_scan, found = _scan_cluster(warehouse, cluster, known, memory, changes, mine)
        old += storm_scan.replaced
        new += found
        kept[cluster] = storm_scan.kept
    return Update(old=old, new=new, memory=memory.since(kept) if before.snapshots != snapshots else None)


def memory_path(warehouse: Path) -> Path:
    """Return the path of the cache."""
    return checkpoint_path(warehouse, "storms") / "shakes.parquet"


def _known(warehouse: Path) -> Known:
    found = rows(warehouse, GROUPS, ("cluster", "group_id", "first_seen_at", "last_record_at"))
    out = {}
    for row in found:
        first = row["first_seen_at"] or 0
        out[row["cluster"], row["group_id"]] = first, row["last_record_at"] or first
    return out


def _changed(warehouse: Path, memory: Memory, snapshots: Snapshots, known: Known) -> dict[Group, int]:
    """Return for each group with changed rows the timestamp from which it must be scanned again, in ms."""
    everything = dict.fromkeys(known, 0)
    if memory.snapshots is None:
        return everything
    since: dict[Group, int] = {}
    for table, columns in COLUMNS.items():
        try:
            found = changed_groups(
                warehouse, table, columns, TIMES[table.name], memory.snapshots[table.name], snapshots[table.name]
            )
        except GoneError:
            return everything
        for cluster, group, at in found:
            start = max(0, at - EARLIER_MS)
            since[cluster, group] = min(start, since.get((cluster, group), start))
    return since


def _disturbances(warehouse: Path, since: Mapping[Group, int]) -> dict[Group, list[Disturbance]]:
    """Return the disturbances of these groups since their timestamps."""
    if not since:
        return {}
    begin = max(0, min(since.values()) - MEMORY_MS)
    if is_elsewhere(warehouse):
        return _by_spark(warehouse, since, begin)
    groups = {group for _, group in since}
    late = {
        table: stored_rows(warehouse, table, columns, where=among(groups), since=(TIMES[table.name], begin))
        for table, columns in COLUMNS.items()
    }
    out, keys = {}, list(since)
    # In parts, because an hour of a thousand busy groups takes hundreds of MB as Python objects.
    for first in range(0, len(keys), AT_ONCE):
        part = {key: since[key] for key in keys[first : first + AT_ONCE]}
        found = {table: _of_groups(late[table], TIMES[table.name], part) for table in COLUMNS}
        for key in part:
            generations = cast("list[GenerationRow]", found[GENERATIONS][key])
            events = cast("list[GroupEventRow]", found[GROUP_EVENTS][key])
            new = disturbances(key[1], generations, events)
            out[key] = [disturbance for disturbance in new if disturbance.at >= since[key]]
    return out


def _by_spark(warehouse: Path, since: Mapping[Group, int], begin: int) -> dict[Group, list[Disturbance]]:
    """Return the same disturbances, found in Spark's tasks. The driver gets no other row: only these form storms."""
    spark = SparkSession.active()
    starts = [(cluster, group, at) for (cluster, group), at in since.items()]
    generations, events = (
        read(spark, warehouse, table, version_of(table))
        .select(*COLUMNS[table])
        .where(not_before(TIMES[table.name], begin))
        for table in COLUMNS
    )
    since_rows = spark.createDataFrame(starts, "cluster STRING, group_id STRING, since_ms BIGINT")
    found = disturbances_of_groups(generations, events, since_rows, list(SCHEMA)).toArrow()
    out: dict[Group, list[Disturbance]] = {group: [] for group in since}
    for cluster, disturbance in zip(found["cluster"].to_pylist(), disturbances_of(found), strict=True):
        out[cluster, disturbance.group_id].append(disturbance)
    return out


def _of_groups(late: pa.Table, time: str, since: Mapping[Group, int]) -> dict[Group, list[dict[str, Any]]]:
    """Return the rows of these groups that are relevant to events since their timestamps."""
    of_group: dict[Group, list[dict[str, Any]]] = defaultdict(list)
    names = pa.array({group for _, group in since}, pa.string())
    for row in milliseconds(late.filter(pc.is_in(late["group_id"], value_set=names))).to_pylist():
        key = row["cluster"], row["group_id"]
        if key in since and row[time] >= since[key] - MEMORY_MS:
            of_group[key].append(row)
    return of_group


def _scan_cluster(
    warehouse: Path,
    cluster: str,
    known: Known,
    memory: Memory,
    changes: Mapping[str, int],
    stored: list[StormRow],
) -> tuple[StormScan, list[StormRow]]:
    """Scan the changes of one cluster; return the scan and the new rows."""
    until = max(last for (name, _), (_, last) in known.items() if name == cluster)
    storm_scan = StormScan(
        cluster=cluster,
        stored=stored,
        since_ms=min([until - RECENT_MS, *(at - 2 * WINDOW_MS for at in changes.values())]),
        first_seen_at={group: first for (name, group), (first, _) in known.items() if name == cluster},
    )
    table = memory.disturbances.filter(pc.field("cluster") == cluster)
    lately = disturbances_of(table.filter(pc.field("at") >= storm_scan.lately))
    storm_scan.find_cluster_storms(lately)
    groups = storm_scan.groups(lately)
    is_theirs = pc.field("group_id").isin(pa.array(sorted(groups), pa.string()))
    earlier = disturbances_of(table.filter(is_theirs & (pc.field("at") < storm_scan.lately)))
    of_groups: dict[str, list[Disturbance]] = {group: [] for group in groups}
    for disturbance in chain(earlier, lately):
        if disturbance.group_id in groups and disturbance.at >= storm_scan.needed(disturbance.group_id):
            of_groups[disturbance.group_id].append(disturbance)
    storms = storm_scan.storms(of_groups)
    if not storms:
        return storm_scan, []
    every = cast("list[MarkRow]", rows(warehouse, MARKS, MARKS.names, where=pc.field("cluster") == cluster))
    marks, pods = in_order(announced(every)), pod_index(every)
    changed_at = sorted(m["marked_at"] for m in every if m["change"] not in (None, PodChange.STARTED))
    before = {row["storm_id"]: row for row in storm_scan.replaced}
    out: list[StormRow] = []
    new: list[Storm] = []
    for storm in storms:
        row = before.get(storm.storm_id)
        later = min((at for group in storm.group_ids if (at := changes.get(group)) is not None), default=None)
        is_same = later is None or later > storm.last_at + EARLIER_MS
        first = bisect_left(changed_at, storm.started_at - MARK_MS)
        has_pods = first < len(changed_at) and changed_at[first] <= storm.last_at + SLACK_MS
        if row is not None and is_same and not has_pods and is_described(storm, row, marks):
            out.append(described_again(storm, row, until))
        else:
            new.append(storm)
    for part, silver in silver_of_storms(warehouse, new):
        out += [storm_row(storm, until, facts(silver, storm, marks, pods), marks) for storm in part]
    return storm_scan, out
