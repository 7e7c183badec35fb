"""The causes of a storm's rebalances and their verdicts, from the diagnoses of its groups, read from silver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from duckdb import DuckDBPyConnection

from dashboards.lake.lake import milliseconds
from jobs.gold.storm_silver import BEFORE_MS, StormSilver, named
from jobs.tables.engine import connect, quoted
from pipelines.gold.diagnosis.verdicts import sums
from pipelines.gold.groups import INPUTS, TIMES
from pipelines.gold.pod_ends import NO_PODS, PodIndex
from pipelines.gold.rebalance_causes import RebalanceCauses, rebalance_causes
from pipelines.gold.rows import MOST, REPLAYED
from pipelines.gold.storms.disturbances import WINDOW_MS
from pipelines.gold.storms.storm_causes import DiagnosedRebalance
from pipelines.gold.storms.storms import Storm
from schemas.rows import GroupHistory, VerdictSumRow
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUP_EVENTS, STALLS
from schemas.tables import Table
from schemas.thresholds import HOUR_MS

JUDGED = 100
"""Groups of a storm to diagnose, hardest hit first. More give the same result and cost seconds per batch."""

FEWEST = 40
"""Generations to diagnose per group if a storm has many groups."""

AT_ONCE = 25
"""Groups whose rows are Python objects at the same time."""

AFTER_MS = WINDOW_MS
"""Calm time after which a storm is over, in ms. Later events do not change the causes of its rebalances."""

COLUMNS = {
    GENERATIONS: (
        "group_id", "incarnation", "generation_id", "prepared_at", "joined_at", "join_ms", "completed_at", "group_type",
        "group_protocol", "rebalance_mode", "assignor", "trigger", "trigger_evidence", "trigger_member_id",
        "joined_member_ids", "left_member_ids", "slowest_member_id", "slowest_waited_ms", "source_offset",
        "folded_count",
    ),
    GENERATION_MEMBERS: (
        "group_id", "incarnation", "generation_id", "member_id", "valid_from_at", "group_instance_id", "client_id",
        "client_host", "session_timeout_ms", "rebalance_timeout_ms", "subscribed_topics", "assigned",
    ),
    STALLS: (
        "group_id", "incarnation", "generation_id", "from_member_id", "cause", "stopped_by_offset",
        "stopped_at_earliest", "stopped_at_latest", "resumed_at_earliest", "stopped_ms_min", "stopped_ms",
        "stopped_ms_max", "last_commit_at",
    ),
    GROUP_EVENTS: (
        "group_id", "incarnation", "generation_id", "event_at", "kind", "member_id", "detail", "evidence",
    ),
}  # fmt: skip
"""The columns of each table that a diagnosis reads."""

CHOSEN = f"""
CREATE TEMP TABLE whole AS
WITH near AS (
    SELECT group_id, incarnation, generation_id, epoch_ms(joined_at) AS joined_ms,
           row_number() OVER newest AS position, sum(coalesce(resources_assigned, 0)) OVER newest AS resources
    FROM generations
    WHERE cluster = $cluster AND group_id IN (SELECT unnest($groups)) AND epoch_ms(joined_at) BETWEEN $begin AND $end
    WINDOW newest AS (PARTITION BY group_id ORDER BY incarnation DESC, generation_id DESC)
)
SELECT * FROM near WHERE position <= $most AND (position <= 2 OR resources <= {REPLAYED})
"""  # noqa: S608 - our own names
"""The newest generations of each group, limited so that diagnosing them needs bounded memory."""

OF_TABLE = {
    GENERATIONS: "SELECT {columns} FROM generations JOIN chosen USING (group_id, incarnation, generation_id) "
    "WHERE cluster = $cluster AND group_id IN ({groups}) AND epoch_ms(joined_at) <= $end",
    GENERATION_MEMBERS: "SELECT {columns} FROM generation_members "
    "JOIN chosen USING (group_id, incarnation, generation_id) "
    "WHERE cluster = $cluster AND group_id IN ({groups}) AND epoch_ms(valid_from_at) <= $end",
    STALLS: "SELECT {columns} FROM stalls JOIN chosen USING (group_id, incarnation, generation_id) "
    "WHERE cluster = $cluster AND group_id IN ({groups}) AND epoch_ms(stopped_at_latest) BETWEEN $begin AND $end",
    GROUP_EVENTS: "SELECT {columns} FROM group_events "
    "JOIN (SELECT group_id, min(joined_ms) AS since_ms FROM chosen GROUP BY group_id) USING (group_id) "
    "WHERE cluster = $cluster AND group_id IN ({groups}) AND epoch_ms(event_at) BETWEEN since_ms AND $end",
}
"""Each names the groups of `chosen` again, so that DuckDB skips row groups whichever side of the join it holds. From
some 400 generations on, it held all stalls of a storm instead.
"""


class StormCauses(NamedTuple):
    """The cause of each of a storm's unexplained rebalances, in order of time, the sums of all its rebalances by
    verdict, and the changes of their members' pods in words, in order of time.
    """

    diagnosed: list[DiagnosedRebalance]
    verdicts: list[VerdictSumRow]
    pod_changes: list[str]


def causes(silver: StormSilver, storm: Storm, hardest_first: Sequence[str], pods: PodIndex = NO_PODS) -> StormCauses:
    """Return the causes for at most `JUDGED` groups. `pods` are the pods of the cluster.

    Rebalances that never completed have no diagnosis and are left out.
    """
    groups = list(hardest_first[:JUDGED])
    found: dict[str, RebalanceCauses] = {}
    with connect() as engine:
        for table in INPUTS:
            since = TIMES[table.name], storm.started_at - BEFORE_MS
            silver.show(engine, table.name, table, since, groups=named(storm.cluster, groups))
        _choose(engine, storm, groups)
        for first in range(0, len(groups), AT_ONCE):
            found |= _diagnosed(engine, storm, groups[first : first + AT_ONCE], pods)
    judged = [j for mine in found.values() for j in mine.rebalances]
    during = [j for j in judged if storm.started_at <= j.row["joined_at"] <= storm.last_at]
    ended = {(end.change["marked_at"], end.change["text"]) for j in during for d in j.ended if (end := d.pod)}
    return StormCauses(_diagnosed_rebalances(storm, found), sums(during), [text for _, text in sorted(ended)])


def _diagnosed_rebalances(storm: Storm, found: Mapping[str, RebalanceCauses]) -> list[DiagnosedRebalance]:
    out = []
    for disturbance in storm.disturbances:
        if disturbance.group_id in found:
            generation = (
                None if disturbance.generation_id is None else (disturbance.incarnation, disturbance.generation_id)
            )
            cause = found[disturbance.group_id].cause(generation, disturbance.at)
            if cause is not None:
                out.append(
                    DiagnosedRebalance(group_id=disturbance.group_id, cause=cause, rebalances=disturbance.rebalances)
                )
    return out


def _choose(engine: DuckDBPyConnection, storm: Storm, groups: Sequence[str]) -> None:
    """Create the table `whole` with the generations to read."""
    asked = {"cluster": storm.cluster, "begin": storm.started_at - BEFORE_MS, "end": storm.last_at + AFTER_MS}
    engine.execute(CHOSEN, asked | {"groups": groups, "most": max(FEWEST, MOST // len(groups))})


def _diagnosed(
    engine: DuckDBPyConnection, storm: Storm, groups: Sequence[str], pods: PodIndex
) -> dict[str, RebalanceCauses]:
    asked = {"cluster": storm.cluster, "begin": storm.started_at - HOUR_MS, "end": storm.last_at + AFTER_MS}
    engine.execute("DROP TABLE IF EXISTS chosen")
    sql = "CREATE TEMP TABLE chosen AS SELECT * FROM whole WHERE group_id IN (SELECT unnest($groups))"
    engine.execute(sql, {"groups": groups})
    silver: Mapping[str, dict[str, list[dict[str, Any]]]] = {group: defaultdict(list) for group in groups}
    for table, sql in OF_TABLE.items():
        used = {name: value for name, value in asked.items() if f"${name}" in sql}
        for row in _rows(engine, table, sql, used, groups):
            silver[row["group_id"]][table.name].append(row)
    return {
        group: rebalance_causes(cast("GroupHistory", mine), pods)
        for group, mine in silver.items()
        if mine[GENERATIONS.name]
    }


def _rows(
    engine: DuckDBPyConnection, table: Table, sql: str, asked: Mapping[str, Any], groups: Sequence[str]
) -> list[dict[str, Any]]:
    given = {f"group_{position}": group for position, group in enumerate(groups)}
    text = sql.format(columns=quoted(COLUMNS[table]), groups=", ".join(f"${name}" for name in given))
    response = engine.sql(text, params={**asked, **given}).to_arrow_table()
    rows: list[dict[str, Any]] = milliseconds(response).to_pylist()
    return rows
