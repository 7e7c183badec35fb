"""Where a group's history may be taken up again, so that a batch costs what it changes and not what ever happened."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from schemas.tables import Table

GROUP = ("cluster", "group_id")
NEAR_MS = 2_000
"""Lines up to this much later than a generation's completion may still be its own (`lines.NEAR_MS`, twice)."""


def restarts(
    touched: DataFrame, generations: DataFrame, stalls: DataFrame, rebalances: DataFrame, groups: DataFrame
) -> DataFrame:
    """The last point before new input at which a group's silver rows stand and nothing was left open.

    That is the first generation of an episode that completed before the earliest new input, with every resource in
    somebody's hands when it began; the history is read from the generation before it (the base).

    Reads `touched` (cluster, group_id, `since_at`: time of the earliest new input) and the silver tables. Returns one
    row per touched group: cluster, group_id, `base_epoch`, `base_offset`, `base_at` (its completion), `base_mode`,
    `base_first_seen_at`, `first_epoch`, `first_offset`, `incarnation`, `first_generation_id`; all NULL where the whole
    history is needed.
    """
    placed = _placed(_of(generations, touched))
    starts = rebalances.select(*GROUP, "incarnation", F.col("first_generation_id").alias("generation_id"))
    candidates = (
        _of(starts, touched)
        .join(placed, [*GROUP, "incarnation", "generation_id"])
        .join(touched, list(GROUP))
        .where(F.col("base_offset").isNotNull())
        .where(F.unix_millis("completed_at") + NEAR_MS < F.unix_millis("since_at"))
    )
    latest = Window.partitionBy(*GROUP).orderBy(F.desc("log_epoch"), F.desc("source_offset"))
    chosen = (
        candidates.join(_open(_of(stalls, touched)), _is_open_at(), "left_anti")
        .withColumn("_rank", F.row_number().over(latest))
        .where("_rank = 1")
        .join(groups.select(*GROUP, F.col("first_seen_at").alias("base_first_seen_at")), list(GROUP))
    )
    found = chosen.select(
        *GROUP,
        "base_epoch",
        "base_offset",
        "base_at",
        "base_mode",
        "base_first_seen_at",
        F.col("log_epoch").alias("first_epoch"),
        F.col("source_offset").alias("first_offset"),
        "incarnation",
        F.col("generation_id").alias("first_generation_id"),
    )
    return touched.select(*GROUP).join(found, list(GROUP), "left")


def _of(rows: DataFrame, touched: DataFrame) -> DataFrame:
    return rows.join(touched.select(*GROUP), list(GROUP), "left_semi")


def _placed(generations: DataFrame) -> DataFrame:
    """Each generation with the one before it in the same life of the group."""
    order = Window.partitionBy(*GROUP, "incarnation").orderBy("log_epoch", "source_offset")
    return generations.select(
        *GROUP,
        "incarnation",
        "generation_id",
        "log_epoch",
        "source_offset",
        "completed_at",
        F.lag("log_epoch").over(order).alias("base_epoch"),
        F.lag("source_offset").over(order).alias("base_offset"),
        F.lag("completed_at").over(order).alias("base_at"),
        F.lag("rebalance_mode").over(order).alias("base_mode"),
    )


def _open(stalls: DataFrame) -> DataFrame:
    return stalls.select(
        *(F.col(name).alias(f"stall_{name}") for name in (*GROUP, "incarnation", "log_epoch", "stopped_by_offset")),
        F.col("resumed_generation_id").alias("stall_resumed"),
    )


def _is_open_at() -> Column:
    """The resource stopped before the generation and was nobody's when it began."""
    same = (F.col("stall_cluster") == F.col("cluster")) & (F.col("stall_group_id") == F.col("group_id"))
    before = (F.col("stall_log_epoch") < F.col("log_epoch")) | (
        (F.col("stall_log_epoch") == F.col("log_epoch")) & (F.col("stall_stopped_by_offset") < F.col("source_offset"))
    )
    unresumed = F.col("stall_resumed").isNull() | (F.col("stall_resumed") >= F.col("generation_id"))
    return same & (F.col("stall_incarnation") == F.col("incarnation")) & before & unresumed


def replaced(rows: DataFrame, table: Table, restarts: DataFrame) -> DataFrame:
    """The rows of one silver table that a rebuild from `restarts` replaces: of each group in it, all after its base."""
    joined = rows.alias("row").join(F.broadcast(restarts).alias("point"), list(GROUP))
    columns = [F.col(name) if name in GROUP else F.col(f"row.{name}") for name in table.names]
    return joined.where(F.col("base_offset").isNull() | _after(table)).select(*columns)


def _after(table: Table) -> Column:
    """The row belongs to the first generation after the base, or to a later one."""
    match table.name:
        case "groups":
            return F.lit(True)  # noqa: FBT003 - a literal, not a flag
        case "group_events":
            return F.col("event_at") > F.col("base_at")
        case "stalls":
            return _not_before(("row.log_epoch", "first_epoch"), ("row.stopped_by_offset", "first_offset"))
        case "rebalances":
            return _not_before(
                ("row.incarnation", "point.incarnation"), ("row.first_generation_id", "point.first_generation_id")
            )
        case _:
            return _not_before(
                ("row.incarnation", "point.incarnation"), ("row.generation_id", "point.first_generation_id")
            )


def _not_before(major: tuple[str, str], minor: tuple[str, str]) -> Column:
    (a, b), (c, d) = major, minor
    return (F.col(a) > F.col(b)) | ((F.col(a) == F.col(b)) & (F.col(c) >= F.col(d)))
