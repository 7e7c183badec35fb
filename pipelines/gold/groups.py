"""Gold rows of groups from their silver rows in memory, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa

from pipelines.arrow_types import GROUP, stored
from pipelines.gold.marks_nearby import is_about
from pipelines.gold.memberships import Silver
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from pipelines.gold.rows import AnalysisConfig, Rows, broker, gold_rows
from schemas.gold import GROUP_TABLES
from schemas.rows import MarkRow
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, STALLS
from schemas.tables import Table
from schemas.thresholds import DAY_MS

INPUTS = (GENERATIONS, GENERATION_MEMBERS, STALLS, GROUP_EVENTS)
TIMES = {
    "generations": "joined_at",
    "generation_members": "valid_from_at",
    "stalls": "stopped_at_latest",
    "group_events": "event_at",
}
EARLIER_MS = 2 * DAY_MS
"""Deploys of the day before may change, and depend on the verdicts of the day before that."""

Group = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """By cluster: broker settings as last observed, the end of its history (milliseconds), rows of `marks` of people
    and CI, the pods of Kubernetes, and the digests of their reports (`pod_ends.pod_digests`).
    """

    observed: Mapping[str, Mapping[str, Any]]
    until_ms: Mapping[str, int]
    marks: Mapping[str, Sequence[MarkRow]] = field(default_factory=dict)
    pods: Mapping[str, PodIndex] = field(default_factory=dict)
    pod_digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def cut_ms(since_ms: int, config: AnalysisConfig) -> int:
    """Return the time (milliseconds) from which silver rows are needed for gold rows of the day of `since_ms`.

    The generation in force at that time is needed too.
    """
    return since_ms // DAY_MS * DAY_MS - config.window_ms - EARLIER_MS


def gold_of(
    group: Group,
    silver: Silver,
    since_ms: int,
    known: Known,
    config: AnalysisConfig,
    tables: Sequence[Table] = GROUP_TABLES,
) -> Rows:
    """Return rows of `tables` by table name for one group. `silver` has its rows of `INPUTS` by table name.

    See `rows.gold_rows`.
    """
    cluster, group_id = group
    return gold_rows(
        cluster,
        group_id,
        silver,
        broker=broker(known.observed.get(cluster, {})),
        config=config,
        since_ms=since_ms,
        until_ms=known.until_ms.get(cluster, 0),
        marks=[m for m in known.marks.get(cluster, ()) if is_about(m, (group_id,))],
        tables=tables,
        pods=known.pods.get(cluster, NO_PODS),
    )


def gold_of_few(
    silver: Mapping[str, pa.Table],
    scope: Mapping[Group, int],
    known: Known,
    config: AnalysisConfig,
    tables: Sequence[Table] = GROUP_TABLES,
) -> dict[Table, pa.Table]:
    """Return the same rows as `frame.gold`, with one Arrow table per gold table.

    Args:
        silver: rows of the tables of `INPUTS` by table name, with timestamps in milliseconds.
        scope: by group, the time in milliseconds from which its gold rows are wanted.
        known: facts about the clusters.
        config: configuration of the analysis.
        tables: the gold tables to compute.
    """
    # Rows of one group at a time are Python objects: those of all groups would take gigabytes.
    of_group = {table.name: _by_group(silver[table.name]) for table in INPUTS}
    out: dict[str, list[Mapping[str, Any]]] = {table.name: [] for table in tables}
    for group in scope:
        mine = {name: found[group].to_pylist() if group in found else [] for name, found in of_group.items()}
        if any(mine.values()):
            for name, new in gold_of(group, cast("Silver", mine), scope[group], known, config, tables).items():
                out[name] += new
    return {table: stored(out[table.name], table) for table in tables}


def _by_group(rows: pa.Table) -> dict[Group, pa.Table]:
    """Return the rows of each group, in their order."""
    rows = rows.sort_by([(name, "ascending") for name in GROUP])
    found: dict[Group, pa.Table] = {}
    first = 0
    for of_one in rows.group_by(GROUP, use_threads=False).aggregate([([], "count_all")]).to_pylist():
        found[of_one["cluster"], of_one["group_id"]] = rows.slice(first, of_one["count_all"])
        first += of_one["count_all"]
    return found
