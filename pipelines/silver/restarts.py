"""Where a group's history may be taken up again, so that a batch costs what it changes and not what ever happened."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from schemas.bronze import COORDINATOR_EVENTS, OFFSET_COMMITS
from schemas.silver import GROUPS
from schemas.states import GroupProtocol
from schemas.tables import Table

GROUP = ("cluster", "group_id")
POINT = (
    "base_log_epoch",
    "base_offset",
    "base_at",
    "base_rebalance_mode",
    "log_epoch",
    "source_offset",
    "incarnation",
    "first_generation_id",
)
NEEDED = {
    "generation_members": "WHERE old.valid_to_at IS NULL",
    "stalls": (
        "QUALIFY row_number() OVER (PARTITION BY old.cluster, old.group_id, old.name, old.index "
        "ORDER BY old.log_epoch DESC, old.stopped_by_offset DESC) = 1"
    ),
}
"""Of which rows of a table `committing` looks at no others, in DuckDB's SQL."""

EARLIER_S = 3
"""A line's second may have begun before the base completed, and lines are matched within another."""

NEAR_MS = 2_000
"""Lines up to this much later than a generation's completion may still be its own (`lines.NEAR_MS`, twice)."""


def restarts(touched: DataFrame, rebalances: DataFrame, groups: DataFrame) -> DataFrame:
    """The last episode before new input that began with nothing open and whose first generation stands.

    Reads `touched` (cluster, group_id, `since_at`: time of the earliest new input) and two silver tables. Returns one
    row per touched group: cluster, group_id, the columns `POINT` of that episode and `first_seen_at`; all NULL where
    the whole history is needed.
    """
    stands = F.unix_millis("settled_at") + NEAR_MS < F.unix_millis("since_at")
    known = rebalances.where(F.col("base_offset").isNotNull()).select(*GROUP, "settled_at", *POINT)
    order = F.struct("log_epoch", "source_offset")
    last = (
        known.join(F.broadcast(touched), list(GROUP))
        .where(stands)
        .groupBy(*GROUP)
        .agg(F.max_by(F.struct(*POINT), order).alias("point"))
        .join(groups.select(*GROUP, "first_seen_at"), list(GROUP))
        .select(*GROUP, "point.*", "first_seen_at")
    )
    return touched.select(*GROUP).join(last, list(GROUP), "left")


def committing(touched: DataFrame, groups: DataFrame, stalls: DataFrame, members: DataFrame) -> DataFrame:
    """Rows of `groups` as they become for those that did nothing but commit, and for which that changes nothing else.

    Reads `touched` (cluster, group_id, `since_at`, `last_commit_at`: NULL unless all new input is commits, `committed`:
    resources) and three silver tables. A commit can otherwise be the first one after a stop that is over, bound that
    stop for all that its owner got back, name a topic that was known by its id, or be the first sign of a group.
    """
    protocol = F.coalesce("group_protocol", F.lit(GroupProtocol.CLASSIC))
    is_classic = protocol == GroupProtocol.CLASSIC
    is_consumer = protocol == GroupProtocol.CONSUMER
    quiet = groups.join(F.broadcast(touched.where(F.col("last_commit_at").isNotNull())), list(GROUP))
    quiet = quiet.where(is_classic | is_consumer)
    assigned = (
        members.where(F.col("valid_to_at").isNull())
        .groupBy(*GROUP)
        .agg(F.flatten(F.collect_list("assigned")).alias("assigned"))
    )
    is_known = F.size(F.array_except("committed", F.coalesce("assigned", F.array()))) == 0
    last = F.greatest("last_record_at", "last_commit_at").alias("last_record_at")
    return (
        quiet.join(_awaiting(quiet, stalls, is_classic), list(GROUP), "left_anti")
        .join(assigned, list(GROUP), "left")
        .where(is_classic | is_known)
        .select(*(last if name == "last_record_at" else name for name in GROUPS.names))
    )


def _awaiting(quiet: DataFrame, stalls: DataFrame, is_classic: Column) -> DataFrame:
    """Groups with a stop that is over and without a first commit after it, which the new ones may give or bound."""
    of_group = stalls.join(F.broadcast(quiet.select(*GROUP)), list(GROUP), "left_semi")
    fields = ("incarnation", "resumed_generation_id", "resumed_at_latest", "first_commit_at")
    newest = F.max_by(F.struct(*fields), F.struct("log_epoch", "stopped_by_offset")).alias("stop")
    resource = F.struct("name", "index")
    # Between two generations of the classic protocol no commit of the one counts for the other.
    same = (F.col("stop.incarnation") == F.col("incarnation")) & (
        F.col("stop.resumed_generation_id") == F.col("generation_id")
    )
    bounds = F.col("stop.resumed_at_latest") >= F.col("since_at")
    return (
        quiet.join(of_group.groupBy(*GROUP, "name", "index").agg(newest), list(GROUP))
        .where(F.col("stop.resumed_at_latest").isNotNull() & F.col("stop.first_commit_at").isNull())
        .where((~is_classic | same) & (bounds | F.array_contains("committed", resource)))
        .select(*GROUP)
    )


def replaced(rows: DataFrame, table: Table, points: DataFrame) -> DataFrame:
    """The rows of one silver table that a rebuild from `points` replaces: of each group in it, all after its base."""
    return _chosen(rows, table, points, after_base(table))


def since_base(rows: DataFrame, table: Table, points: DataFrame) -> DataFrame:
    """The rows of one bronze table that a rebuild from `points` needs; a group that is not in it needs none."""
    return _chosen(rows, table, points, from_base(table))


def _chosen(rows: DataFrame, table: Table, points: DataFrame, holds: str) -> DataFrame:
    joined = rows.alias("old").join(F.broadcast(points).alias("point"), list(GROUP))
    columns = [F.col(name) if name in GROUP else F.col(f"old.{name}") for name in table.names]
    return joined.where(F.expr(holds)).select(*columns)


def from_base(table: Table) -> str:
    """In SQL, as Spark and DuckDB both read it: `old`, a row of bronze, is not from before the base of `point`."""
    if table is COORDINATOR_EVENTS:
        after = f"old.event_at >= point.base_at - INTERVAL '{EARLIER_S}' SECOND"
    else:
        offset = "last_offset" if table is OFFSET_COMMITS else "source_offset"
        after = _not_before("log_epoch", "base_log_epoch", offset, "base_offset")
    return f"(point.base_at IS NULL OR {after})"


def after_base(table: Table) -> str:
    """In SQL, as Spark and DuckDB both read it: `old`, a row of silver, belongs to the first generation after `point`,
    or to a later one.
    """
    return f"(point.base_offset IS NULL OR {_of_later(table)})"


def _of_later(table: Table) -> str:
    match table.name:
        case "groups":
            return "true"
        case "group_events":
            return "old.event_at > point.base_at"
        case "stalls":
            return _not_before("log_epoch", "log_epoch", "stopped_by_offset", "source_offset")
        case _:
            number = "first_generation_id" if table.name == "rebalances" else "generation_id"
            return _not_before("incarnation", "incarnation", number, "first_generation_id")


def _not_before(major: str, than_major: str, minor: str, than_minor: str) -> str:
    major, minor, than_major, than_minor = f"old.{major}", f"old.{minor}", f"point.{than_major}", f"point.{than_minor}"
    return f"({major} > {than_major} OR ({major} = {than_major} AND {minor} >= {than_minor}))"
