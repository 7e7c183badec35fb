"""Points in a group's history from which a rebuild may resume, so that a batch does not rebuild the whole history."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from pipelines.silver.carrying import folding
from pipelines.silver.stalls import FIRST_COMMIT_MS
from schemas.bronze import COORDINATOR_EVENTS, OFFSET_COMMITS
from schemas.silver import GROUPS
from schemas.states import GroupProtocol, GroupType
from schemas.tables import Table

GROUP = ("cluster", "group_id")
POINT = (
    "base_log_epoch",
    "base_offset",
    "base_at",
    "base_rebalance_mode",
    "base_state",
    "log_epoch",
    "source_offset",
    "incarnation",
    "first_generation_id",
)
CARRIED = ("unfinished_since_at", "unfinished_stalls", "unfinished_rebalances", "state")
"""Columns of `resume_points` about what was unfinished there; NULL for a point at rest."""

EARLIER_S = 3
"""Seconds before the base from which log lines are read. A line with a precision of one second may have a timestamp
before the base, and lines are matched with a tolerance of another second.
"""

NEAR_S = 2
"""Lines up to this many seconds after a generation's completion may belong to it (twice `generation_log.NEAR_MS`)."""

CLASSIC = f"coalesce(group_protocol, '{GroupProtocol.CLASSIC}') = '{GroupProtocol.CLASSIC}'"
UPDATED = ", ".join(
    "greatest(last_record_at, last_commit_at) AS last_record_at" if name == "last_record_at" else name
    for name in GROUPS.names
)

COMMITTING = f"""
WITH quiet AS (
    SELECT /*+ BROADCAST(affected) */ groups.*, since_at, last_commit_at, {CLASSIC} AS is_classic
    FROM {{groups}} groups
    JOIN {{affected}} affected ON groups.cluster = affected.cluster AND groups.group_id = affected.group_id
    WHERE last_commit_at IS NOT NULL AND ({CLASSIC} OR group_protocol = '{GroupProtocol.CONSUMER}')
), committed AS (
    SELECT cluster, group_id, resource.name AS name, resource.index AS index
    FROM (SELECT cluster, group_id, unnest(committed) AS resource FROM {{affected}} affected) each_committed
), waiting AS (
    SELECT /*+ BROADCAST(quiet), BROADCAST(committed) */
        stalls.cluster, stalls.group_id, stalls.name, stalls.index, stalls.log_epoch, stalls.stopped_by_offset
    FROM {{stalls}} stalls
    JOIN quiet ON stalls.cluster = quiet.cluster AND stalls.group_id = quiet.group_id
    LEFT JOIN committed ON stalls.cluster = committed.cluster AND stalls.group_id = committed.group_id
        AND stalls.name = committed.name AND stalls.index = committed.index
    WHERE stalls.resumed_at_latest IS NOT NULL AND stalls.first_commit_at IS NULL
        AND CASE WHEN is_classic AND coalesce(quiet.group_type, '') <> '{GroupType.STREAMS}'
            THEN stalls.incarnation = quiet.incarnation AND stalls.resumed_generation_id = quiet.generation_id
            ELSE stalls.resumed_at_latest + INTERVAL '{FIRST_COMMIT_MS // 1000}' SECOND >= since_at END
        AND (stalls.resumed_at_latest >= since_at OR committed.cluster IS NOT NULL)
), awaiting AS (
    SELECT cluster, group_id FROM waiting WHERE NOT EXISTS (
        SELECT 1 FROM {{stalls}} later
        WHERE later.cluster = waiting.cluster AND later.group_id = waiting.group_id
            AND later.name = waiting.name AND later.index = waiting.index
            AND (later.log_epoch > waiting.log_epoch
                OR later.log_epoch = waiting.log_epoch AND later.stopped_by_offset > waiting.stopped_by_offset)
    )
), assigned AS (
    SELECT cluster, group_id, resource.name AS name, resource.index AS index
    FROM (
        SELECT /*+ BROADCAST(quiet) */ members.cluster, members.group_id, unnest(members.assigned) AS resource
        FROM {{members}} members
        JOIN quiet ON members.cluster = quiet.cluster AND members.group_id = quiet.group_id
        WHERE members.valid_to_at IS NULL AND NOT is_classic
    ) each_assigned
), unowned AS (
    SELECT cluster, group_id FROM committed WHERE NOT EXISTS (
        SELECT 1 FROM assigned
        WHERE assigned.cluster = committed.cluster AND assigned.group_id = committed.group_id
            AND assigned.name = committed.name AND assigned.index = committed.index
    )
)
SELECT {UPDATED} FROM quiet
WHERE NOT EXISTS (
    SELECT 1 FROM awaiting WHERE awaiting.cluster = quiet.cluster AND awaiting.group_id = quiet.group_id
) AND (is_classic OR NOT EXISTS (
    SELECT 1 FROM unowned WHERE unowned.cluster = quiet.cluster AND unowned.group_id = quiet.group_id
))
"""  # noqa: S608 - the names are constants
"""The query of `committing` in DuckDB's SQL. Spark has another name for `unnest`."""


def restarts() -> str:
    """Return the query of `resume_points` in SQL that both Spark and DuckDB can run; braces contain the table names.

    A group that changes to another protocol is rebuilt from its start (`pipelines.silver.phases`). The rebuild of a
    classic group that is not at rest resumes at the latest point. If a block may begin after this point, the block
    before the latest one, or the latest one, may have to be folded (`carrying.folding`); if one of them has enough
    generations, the rebuild resumes at the beginning of the block before the latest one. If the coordinator assigns, a
    rebuild from a point of `resume_points` begins with the first record of the write that began the next epoch, so both
    positions are equal.
    """
    return f"""
    WITH known AS (
        SELECT cluster, group_id, settled_at, {", ".join(POINT)}, CAST(NULL AS TIMESTAMP) AS unfinished_since_at,
            CAST(NULL AS STRING) AS unfinished_stalls, CAST(NULL AS STRING) AS unfinished_rebalances,
            CAST(NULL AS STRING) AS state, base_state IS NULL AS is_classic, true AS begins_block,
            CAST(NULL AS BIGINT) AS block_until_generation_id, CAST(NULL AS TIMESTAMP) AS block_until_at
        FROM {{rebalances}} WHERE base_offset IS NOT NULL
        UNION ALL
        SELECT cluster, group_id, settled_at,
            {", ".join("CAST(NULL AS STRING) AS base_state" if name == "base_state" else name for name in POINT)},
            {", ".join(CARRIED)}, NOT (base_log_epoch = log_epoch AND base_offset = source_offset) AS is_classic,
            coalesce(begins_block, true) AS begins_block, block_until_generation_id, block_until_at
        FROM {{resume_points}}
    ), possible AS (
        SELECT /*+ BROADCAST(new) */ known.*, groups.first_seen_at,
            greatest(groups.generation_id, new.last_generation_id) AS last_generation_id,
            greatest(groups.last_record_at, new.until_at) + INTERVAL '{NEAR_S}' SECOND AS until_at
        FROM known
        JOIN {{affected}} new ON known.cluster = new.cluster AND known.group_id = new.group_id
        JOIN {{groups}} groups ON known.cluster = groups.cluster AND known.group_id = groups.group_id
        WHERE known.settled_at + INTERVAL '{NEAR_S}' SECOND < new.since_at
            AND NOT coalesce(CASE WHEN known.is_classic THEN new.has_modern ELSE new.has_classic END, false)
    ), numbered AS (
        SELECT *, row_number() OVER latest_first AS nth,
            sum(CASE WHEN begins_block THEN 1 ELSE 0 END) OVER latest_first AS nth_block,
            first_value(state IS NOT NULL AND is_classic AND NOT coalesce(
                last_generation_id >= first_generation_id AND last_generation_id < block_until_generation_id
                AND until_at >= settled_at AND until_at < block_until_at, false
            )) OVER latest_first AS may_begin_block
        FROM possible
        WINDOW latest_first AS (PARTITION BY cluster, group_id ORDER BY log_epoch DESC, source_offset DESC)
    ), blocks AS (
        SELECT *, max(CASE WHEN begins_block AND nth_block = 1 THEN first_generation_id END) OVER of_group AS block_id,
            max(CASE WHEN begins_block AND nth_block = 2 THEN first_generation_id END) OVER of_group AS block_before_id
        FROM numbered
        WINDOW of_group AS (PARTITION BY cluster, group_id)
    ), latest AS (
        SELECT *, may_begin_block AND NOT coalesce(
            last_generation_id - block_id BETWEEN 0 AND {folding.WHOLE - 1}
            AND block_id - block_before_id BETWEEN 0 AND {folding.WHOLE - 1}, false
        ) AS is_foldable
        FROM blocks
    )
    SELECT affected.cluster, affected.group_id, {", ".join(f"latest.{name}" for name in (*POINT, *CARRIED))},
        latest.first_seen_at
    FROM {{affected}} affected LEFT JOIN latest
        ON affected.cluster = latest.cluster AND affected.group_id = latest.group_id AND
            CASE WHEN latest.is_foldable THEN latest.begins_block AND latest.nth_block = 2 ELSE latest.nth = 1 END
    """  # noqa: S608 - the names are constants


def resume_points(affected: DataFrame, rebalances: DataFrame, groups: DataFrame, points: DataFrame) -> DataFrame:
    """Return the last point before the new input from which a rebuild may resume, and before which rows stay unchanged.

    It is an episode that began with every resource owned, or a point with the state that is carried on
    (`carrying.points`).

    Args:
        affected: cluster, group_id, and `since_at`, `has_classic`, `has_modern`, `until_at` and `last_generation_id`
            of the new input (`affected_groups.by_group`).
        rebalances: the silver table.
        groups: the silver table.
        points: the silver table `resume_points`.

    Returns:
        One row per affected group: cluster, group_id, the columns `POINT` and `CARRIED` of that point and
        `first_seen_at`. They are NULL if the whole history is needed.
    """
    return affected.sparkSession.sql(
        restarts(), affected=affected, rebalances=rebalances, groups=groups, resume_points=points
    )


def committing(affected: DataFrame, groups: DataFrame, stalls: DataFrame, members: DataFrame) -> DataFrame:
    """Return updated rows of `groups` for groups with only new commits that change no other row.

    A commit changes other rows in these cases: it is the first one after a stall, it thereby narrows the end of other
    stalls of the same owner, it names a topic that was known only by its id, or it is the first sign of a group.

    Args:
        affected: cluster, group_id, `since_at`, `last_commit_at` (NULL unless all new input is commits) and `committed`
            (resources).
        groups: the silver table.
        stalls: the silver table.
        members: the silver table `generation_members`.
    """
    query = COMMITTING.replace("unnest(", "explode(")
    return affected.sparkSession.sql(query, affected=affected, groups=groups, stalls=stalls, members=members)


def replaced(rows: DataFrame, table: Table, points: DataFrame) -> DataFrame:
    """Return the rows of a silver table that a rebuild from `points` replaces: for each of its groups, all after the
    base.
    """
    return _chosen(rows, table, points, after_base(table))


def since_base(rows: DataFrame, table: Table, points: DataFrame) -> DataFrame:
    """Return the rows of a bronze table that a rebuild from `points` needs. Groups without a point need none."""
    return _chosen(rows, table, points, from_base(table))


def _chosen(rows: DataFrame, table: Table, points: DataFrame, condition: str) -> DataFrame:
    joined = rows.alias("old").join(F.broadcast(points).alias("point"), list(GROUP))
    columns = [F.col(name) if name in GROUP else F.col(f"old.{name}") for name in table.names]
    return joined.where(F.expr(condition)).select(*columns)


def from_base(table: Table) -> str:
    """Return an SQL condition for Spark and DuckDB: the bronze row `old` is not before the base of `point`."""
    if table is COORDINATOR_EVENTS:
        after = f"old.event_at >= point.base_at - INTERVAL '{EARLIER_S}' SECOND"
    else:
        offset = "last_offset" if table is OFFSET_COMMITS else "source_offset"
        after = _not_before("log_epoch", "base_log_epoch", offset, "base_offset")
    return f"(point.base_at IS NULL OR {after})"


def after_base(table: Table) -> str:
    """Return an SQL condition for Spark and DuckDB.

    It is true if the silver row `old` belongs to the first generation after `point` or to a later one.
    """
    return f"(point.base_offset IS NULL OR {_of_later(table)})"


def _of_later(table: Table) -> str:
    match table.name:
        case "groups":
            return "true"
        case "group_events":
            return "old.event_at > point.base_at"
        case "stalls":
            classic = _not_before("log_epoch", "log_epoch", "stopped_by_offset", "source_offset")
            # A member's last record precedes the record of the next epoch.
            assigned = _not_before("log_epoch", "base_log_epoch", "stopped_by_offset", "base_offset")
            later = f"CASE WHEN point.base_state IS NULL THEN {classic} ELSE {assigned} END"
            key = "CAST(old.stopped_by_offset AS STRING) || '/' || CAST(old.index AS STRING) || '/' || md5(old.name)"
            return f"({later} OR {_unfinished('unfinished_stalls', key)})"
        case "rebalances":
            later = _not_before("incarnation", "incarnation", "first_generation_id", "first_generation_id")
            key = "CAST(old.first_generation_id AS STRING)"
            return f"({later} OR {_unfinished('unfinished_rebalances', key)})"
        case _:
            number = "first_generation_id" if table.name == "resume_points" else "generation_id"
            return _not_before("incarnation", "incarnation", number, "first_generation_id")


def _unfinished(column: str, key: str) -> str:
    """Return the condition that the point lists the row, which has a key without `|`, as unfinished."""
    listed = f"contains(point.{column}, '|' || {key} || '|')"
    return f"(point.incarnation = old.incarnation AND coalesce({listed}, false))"


def _not_before(major: str, than_major: str, minor: str, than_minor: str) -> str:
    major, minor, than_major, than_minor = f"old.{major}", f"old.{minor}", f"point.{than_major}", f"point.{than_minor}"
    return f"({major} > {than_major} OR ({major} = {than_major} AND {minor} >= {than_minor}))"
