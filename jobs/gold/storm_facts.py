"""The cost of a storm, the causes of its rebalances, and how its groups differ from others, read from silver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from duckdb import DuckDBPyConnection

from dashboards.lake.lake import milliseconds, moment
from jobs.gold.storm_causes import causes
from jobs.gold.storm_silver import COMPARED, MEMBER, StormSilver, named
from jobs.tables.engine import connect
from pipelines.gold.groups import TIMES
from pipelines.gold.marks_nearby import before, groups_of
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from pipelines.gold.storms.differences import Attributes, Difference, attributes_of, culprits, differences, frozen
from pipelines.gold.storms.storm_cost import COST, Cost, GroupCost
from pipelines.gold.storms.storm_rows import StormFacts
from pipelines.gold.storms.storms import Storm
from schemas.rows import MarkRow
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, STALLS
from schemas.states import StormScope
from schemas.thresholds import HOUR_MS


def facts(silver: StormSilver, storm: Storm, marks: Sequence[MarkRow] = (), pods: PodIndex = NO_PODS) -> StormFacts:
    """Return the facts from the rows of the storm's groups and, for a storm of several groups, of all other groups.

    Of other groups, only the rows in force at the start are read. `marks` and `pods` are the marks and the pods of the
    cluster.
    """
    cost = _cost(silver, storm)
    is_alone = storm.scope == StormScope.GROUP
    diagnosed, verdicts, ended = causes(silver, storm, [group.group_id for group in cost.groups], pods)
    return StormFacts(
        cost=cost,
        diagnosed=diagnosed,
        differences=_within(silver, storm) if is_alone else _among_groups(silver, storm, marks),
        verdicts=verdicts,
        pod_changes=ended,
    )


def _cost(silver: StormSilver, storm: Storm) -> Cost:
    begin, end = storm.started_at, storm.last_at
    asked = {"cluster": storm.cluster, "groups": sorted(storm.group_ids), "begin": begin, "end": end}
    with connect() as engine:
        for table in (GENERATIONS, STALLS):
            groups = named(storm.cluster, storm.group_ids)
            silver.show(engine, table.name, table, (TIMES[table.name], begin - HOUR_MS), groups=groups)
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


def _within(silver: StormSilver, storm: Storm) -> list[Difference]:
    """Return how the instances that triggered the storm's rebalances differ from the group's others."""
    named: dict[tuple[str, str], Attributes] = {}
    for row in _members(silver, storm, among_all=False):
        name = row["group_instance_id"] or row["client_id"] or row["member_id"]
        named[name, row["client_host"] or ""] = frozen(attributes_of(row) | {"instance": {name}})
    starters = [
        named[s.started_by, s.client_host] for s in storm.disturbances if (s.started_by, s.client_host) in named
    ]
    return culprits(starters, list(named.values()))


def _among_groups(silver: StormSilver, storm: Storm, marks: Sequence[MarkRow]) -> list[Difference]:
    """Return how the storm's groups differ from the cluster's other groups."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in _members(silver, storm, among_all=True):
        for name, values in attributes_of(row).items():
            found[row["group_id"]][name] |= values
    for row in _generations(silver, storm):
        for name in ("coordinator", "offsets_partition", *COMPARED):
            if row[name] is not None:
                found[row["group_id"]][name].add(str(row[name]))
    for mark in before(storm.started_at, marks):
        for group in groups_of(mark):
            if group in found:
                found[group]["mark"].add(mark["text"])
    hit = [frozen(values) for group, values in found.items() if group in storm.group_ids]
    return differences(hit, [frozen(values) for group, values in found.items() if group not in storm.group_ids])


def _members(silver: StormSilver, storm: Storm, *, among_all: bool) -> list[dict[str, Any]]:
    """Return the members in force when the storm began, of all groups (`among_all`) or of its own groups.

    For only its own groups, also return the members of generations during the storm.
    """
    sql = f"""
    WITH known AS (
        SELECT *, incarnation::BIGINT << 32 | generation_id AS number FROM found
        WHERE cluster = $cluster AND valid_from_at <= $last AND ($all OR group_id IN (SELECT unnest($groups)))
    ), base AS (SELECT group_id, max(number) AS number FROM known WHERE valid_from_at <= $start GROUP BY group_id)
    SELECT {", ".join(f"known.{name}" for name in MEMBER)} FROM known LEFT JOIN base USING (group_id)
    WHERE known.number = base.number OR (NOT $all AND known.number > coalesce(base.number, -1))
    """  # noqa: S608 - our own names
    more = {"last": moment(storm.last_at), "groups": sorted(storm.group_ids), "all": among_all}
    with connect() as engine:
        if among_all:
            silver.show_members_in_force(engine, "found", storm)
        else:
            until = f"valid_from_at <= timestamp_millis({storm.last_at:d})"
            theirs = named(storm.cluster, storm.group_ids)
            silver.show(engine, "found", GENERATION_MEMBERS, groups=theirs, where=until)
        return _rows(engine, sql, storm, more)


def _generations(silver: StormSilver, storm: Storm) -> list[dict[str, Any]]:
    """Return each group's generation in force when the storm began, with the coordinator of its offsets partition."""
    sql = f"""
    WITH known AS (SELECT * FROM found WHERE cluster = $cluster AND joined_at <= $start),
    led AS (
        SELECT source_partition, arg_max(coordinator_id, joined_at) AS coordinator FROM known
        WHERE coordinator_id IS NOT NULL GROUP BY source_partition
    ), base AS (
        SELECT group_id, {", ".join(f"arg_max({name}, joined_at) AS {name}" for name in COMPARED)},
               arg_max(source_partition, joined_at) AS source_partition FROM known GROUP BY group_id
    )
    SELECT base.*, source_partition AS offsets_partition, coordinator FROM base LEFT JOIN led USING (source_partition)
    """  # noqa: S608 - our own names
    with connect() as engine:
        silver.show_generations_in_force(engine, "found", storm)
        return _rows(engine, sql, storm)


def _rows(
    engine: DuckDBPyConnection, sql: str, storm: Storm, more: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    parameters = {"cluster": storm.cluster, "start": moment(storm.started_at), **(more or {})}
    rows: list[dict[str, Any]] = milliseconds(engine.sql(sql, params=parameters).to_arrow_table()).to_pylist()
    return rows
