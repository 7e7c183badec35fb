"""The cost of a storm, the causes of its rebalances, and how its groups differ from others, read from silver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dashboards.lake.lake import milliseconds, moment
from jobs.gold.storm_causes import causes, named
from jobs.tables.engine import connect, show
from jobs.tables.named_tables import of_cluster
from pipelines.gold.marks_nearby import before, groups_of
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from pipelines.gold.storms.differences import Attributes, Difference, attributes_of, culprits, differences, frozen
from pipelines.gold.storms.storm_cost import COST, Cost, GroupCost
from pipelines.gold.storms.storm_rows import StormFacts
from pipelines.gold.storms.storms import Storm
from schemas.rows import MarkRow
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, STALLS
from schemas.states import StormScope
from schemas.tables import Table
from schemas.thresholds import HOUR_MS

IN_FORCE = ("group_id", "assignor", "rebalance_mode", "group_protocol")
MEMBER = ("group_id", "incarnation", "generation_id", "member_id", "valid_from_at", "group_instance_id", "client_id",
          "client_host", "client_library", "subscribed_topics")  # fmt: skip


def facts(warehouse: Path, storm: Storm, marks: Sequence[MarkRow] = (), pods: PodIndex = NO_PODS) -> StormFacts:
    """Return the facts from the rows of the storm's groups and, for a storm of several groups, of all other groups.

    Of other groups, only the rows in force at the start are read. `marks` and
    `pods` are the marks and the pods of the cluster.
    """
    cost = _cost(warehouse, storm)
    is_alone = storm.scope == StormScope.GROUP
    diagnosed, verdicts, ended = causes(warehouse, storm, [group.group_id for group in cost.groups], pods)
    return StormFacts(
        cost=cost,
        diagnosed=diagnosed,
        differences=_within(warehouse, storm) if is_alone else _among_groups(warehouse, storm, marks),
        verdicts=verdicts,
        pod_changes=ended,
    )


def _cost(warehouse: Path, storm: Storm) -> Cost:
    begin, end = storm.started_at, storm.last_at
    times = {GENERATIONS: "joined_at", STALLS: "stopped_at_latest"}
    asked = {"cluster": storm.cluster, "groups": sorted(storm.group_ids), "begin": begin, "end": end}
    with connect() as engine:
        for table, time in times.items():
            groups = named(storm.cluster, storm.group_ids)
            show(engine, table.name, warehouse, table, (time, begin - HOUR_MS), groups=groups)
        found = engine.sql(COST, params=asked).fetchall()
    return Cost(
        groups=[
            GroupCost(
                group_id=g,
                rebalances=rebalances,
                lost_min=least,
                lost=lost,
                lost_max=most,
                lost_low=low,
                lost_high=high,
                under_way=under_way,
            )
            for g, rebalances, least, lost, most, low, high, under_way in found
        ],
        length_ms=end - begin,
    )


def _within(warehouse: Path, storm: Storm) -> list[Difference]:
    """Return how the instances that triggered the storm's rebalances differ from the group's others."""
    named: dict[tuple[str, str], Attributes] = {}
    for row in _members(warehouse, storm, among_all=False):
        name = row["group_instance_id"] or row["client_id"] or row["member_id"]
        named[name, row["client_host"] or ""] = frozen(attributes_of(row) | {"instance": {name}})
    starters = [
        named[s.started_by, s.client_host] for s in storm.disturbances if (s.started_by, s.client_host) in named
    ]
    return culprits(starters, list(named.values()))


def _among_groups(warehouse: Path, storm: Storm, marks: Sequence[MarkRow]) -> list[Difference]:
    """Return how the storm's groups differ from the cluster's other groups."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in _members(warehouse, storm, among_all=True):
        for name, values in attributes_of(row).items():
            found[row["group_id"]][name] |= values
    for row in _generations(warehouse, storm):
        for name in ("coordinator", "offsets_partition", "assignor", "rebalance_mode", "group_protocol"):
            if row[name] is not None:
                found[row["group_id"]][name].add(str(row[name]))
    for mark in before(storm.started_at, marks):
        for group in groups_of(mark):
            if group in found:
                found[group]["mark"].add(mark["text"])
    hit = [frozen(values) for group, values in found.items() if group in storm.group_ids]
    return differences(hit, [frozen(values) for group, values in found.items() if group not in storm.group_ids])


def _members(warehouse: Path, storm: Storm, *, among_all: bool) -> list[dict[str, Any]]:
    """Return the members in force when the storm began, of its groups or of all groups (`among_all`).

    For its own groups, also return the members of generations during the storm.
    """
    return _query(
        warehouse,
        GENERATION_MEMBERS,
        f"""
        WITH known AS (
            SELECT *, incarnation::BIGINT << 32 | generation_id AS number FROM found
            WHERE cluster = $cluster AND valid_from_at <= $last AND ($all OR group_id IN (SELECT unnest($groups)))
        ), base AS (SELECT group_id, max(number) AS number FROM known WHERE valid_from_at <= $start GROUP BY group_id)
        SELECT {", ".join(f"known.{name}" for name in MEMBER)} FROM known LEFT JOIN base USING (group_id)
        WHERE known.number = base.number OR (NOT $all AND known.number > coalesce(base.number, -1))
        """,  # noqa: S608 - our own names
        storm,
        f"valid_from_at <= timestamp_millis({storm.last_at:d})",
        groups=None if among_all else named(storm.cluster, storm.group_ids),
        all=among_all,
    )


def _generations(warehouse: Path, storm: Storm) -> list[dict[str, Any]]:
    """Return each group's generation in force when the storm began, with the coordinator of its offsets partition."""
    return _query(
        warehouse,
        GENERATIONS,
        f"""
        WITH known AS (SELECT * FROM found WHERE cluster = $cluster AND joined_at <= $start),
        led AS (
            SELECT source_partition, arg_max(coordinator_id, joined_at) AS coordinator FROM known
            WHERE coordinator_id IS NOT NULL GROUP BY source_partition
        ), base AS (
            SELECT group_id, {", ".join(f"arg_max({name}, joined_at) AS {name}" for name in IN_FORCE[1:])},
                   arg_max(source_partition, joined_at) AS source_partition FROM known GROUP BY group_id
        )
        SELECT base.*, source_partition AS offsets_partition, coordinator
        FROM base LEFT JOIN led USING (source_partition)
        """,  # noqa: S608 - our own names
        storm,
        f"joined_at <= timestamp_millis({storm.started_at:d})",
    )


def _query(
    warehouse: Path,
    table: Table,
    sql: str,
    storm: Storm,
    until: str,
    groups: pa.Table | None = None,
    **more: Any,
) -> list[dict[str, Any]]:
    """Return the rows of a query with the storm's parameters. Its view `found` is the table.

    The query itself selects the rows of the cluster, of `groups`, and for which `until` is true; Spark returns no other
    rows to it.
    """
    parameters = {"cluster": storm.cluster, "start": moment(storm.started_at), **more}
    if "$last" in sql:
        parameters |= {"last": moment(storm.last_at), "groups": sorted(storm.group_ids)}
    with connect() as engine:
        show(engine, "found", warehouse, table, groups=groups, where=f"{of_cluster(storm.cluster)} AND {until}")
        found: list[dict[str, Any]] = milliseconds(engine.sql(sql, params=parameters).to_arrow_table()).to_pylist()
    return found
