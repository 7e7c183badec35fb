"""Build silver from bronze: rebuild the groups that new bronze rows affect, and replace the rows that differ.

The result does not depend on the order of arrival, because bronze is immutable and `pipelines.silver` is pure. A retry,
a late log line and a rebuild from scratch therefore give the same tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects
from pyspark.sql.streaming.query import StreamingQuery

from jobs.analyze import analyze
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.processes.process_lock import acquire
from jobs.retention.retention import has_settled, unsettled, with_settled
from jobs.silver import pending_first_commits
from jobs.silver.build_marks import rebuild_all_marks, start_marks, update_marks
from jobs.silver.build_reassignments import (
    rebuild_affected_reassignments,
    rebuild_all_reassignments,
    start_reassignments,
)
from jobs.silver.first_build import all_rows, begin_after, is_first, stored_versions, write_note
from jobs.silver.group_limits import group_limits
from jobs.silver.inputs import FEW_GROUPS, Frames, SilverInputs
from jobs.silver.pending_first_commits import GROUP
from jobs.silver.rebuilt_rows import rebuilt_rows
from jobs.silver.requeue import reopen, requeue
from jobs.silver.silver_tasks import Making, silver_by_tasks
from jobs.silver.staged_rebuild import StagedRebuild, overwrite_all, silver_frame
from jobs.silver.topic_names import polled_topics, with_named
from jobs.spark.checkpoint import place, start_over_unless
from jobs.spark.lost_worker import lost_worker
from jobs.spark.spark import for_few_rows, persisted, session_of
from jobs.spark.streams import Streams, report
from jobs.states.kept import save_states
from jobs.tables.append import overwrite, overwrite_frame
from jobs.tables.ask import ask
from jobs.tables.create_tables import create_tables, needs_spark
from jobs.tables.delta_io import WRITERS, checkpoint_path, follow, read, required
from jobs.tables.disk.durability import after_sync
from jobs.tables.engine import connect
from jobs.tables.location import is_elsewhere
from jobs.tables.new_rows import NewRows
from jobs.tables.replace import replace_rows, replace_whole
from jobs.tables.table_facts import exists
from jobs.tables.tables import Tables, tables_at
from pipelines.rows_of_tables import rows_of, table_of
from pipelines.silver.affected_groups import AFFECTED, DUCKDB, affected_frame, affected_sql, by_group_frame
from pipelines.silver.frame import PolledTopics
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.gold import MARKS
from schemas.silver import GROUPS, REASSIGNMENT_TABLES, REBALANCES, RESUME_POINTS, SILVER, STALLS
from schemas.states import GroupProtocol
from schemas.tables import Table

INPUTS = {COORDINATOR_RECORDS: "record_at", OFFSET_COMMITS: "first_commit_at", COORDINATOR_EVENTS: "event_at"}
"""Bronze tables that groups are built from, each with the column that holds a row's timestamp."""
FOLLOWED = (*INPUTS, ADMIN_OBSERVATIONS)
"""Bronze tables whose new rows can affect a group."""


def rebuild_all(spark: SparkSession, settings: Settings) -> None:
    """Rebuild every silver table from all of bronze, and replace each table in one commit.

    Rows that were over before the start of bronze are kept.
    """
    warehouse = settings.warehouse
    making = Making.of(settings, polled_topics(warehouse))
    create_tables(spark, warehouse, SILVER)
    known, limits = _beginnings(warehouse), group_limits(warehouse, settings.limits)
    beginnings = limits.admitted(known, anew=True).drop_columns("since_at")
    if not needs_spark(warehouse, (GROUPS,)) and not has_settled(warehouse):
        made = silver_by_tasks(spark, warehouse, beginnings, making, in_files=True, processes=settings.cores)
        _of_each_table(lambda table: overwrite(warehouse, made[table]))
        limits.report(_tables(spark, warehouse))
        return
    history = Frames(*(read(spark, warehouse, table) for table in INPUTS))
    if beginnings.num_rows < known.num_rows:
        admitted = F.broadcast(spark.createDataFrame(beginnings.select(GROUP)))
        history = Frames(*(rows.join(admitted, GROUP, "left_semi") for rows in history))
    rebuilt = silver_frame(history, making)
    if is_elsewhere(warehouse):
        overwrite_all(spark, warehouse, rebuilt, SILVER)
    else:
        with persisted(rebuilt):
            for table in SILVER:
                rows = partial(with_settled, spark, warehouse, table_of(rebuilt, table), table)
                overwrite_frame(rows, warehouse, table)
    limits.report(_tables(spark, warehouse))


def _beginnings(warehouse: Path) -> pa.Table:
    """Return all groups of bronze as resume points at their first record, in the columns of `restarts`.

    The extra column `since_at` is the timestamp of the group's first row. Silver is not read, because it may be
    damaged.
    """
    rows = " UNION ALL ".join(
        f"SELECT cluster, group_id, {at} AS seen_at FROM {{{table.name}}}"  # noqa: S608 - our own names
        for table, at in INPUTS.items()
    )
    return ask(
        warehouse,
        "SELECT cluster, group_id, min(seen_at) AS since_at, CAST(NULL AS TIMESTAMP) AS base_at, "  # noqa: S608
        "CAST(NULL AS INTEGER) AS base_log_epoch, CAST(NULL AS BIGINT) AS base_offset "
        f"FROM ({rows}) AS seen WHERE group_id IS NOT NULL GROUP BY cluster, group_id",
        tuple(INPUTS),
    )


def rebuild_new(spark: SparkSession | None, settings: Settings, new: Mapping[Table, NewRows]) -> bool:
    """Update marks, reassignments and the groups' tables for new rows that bronze already holds.

    In local mode no session is needed: this process, or several others for many rows, do the work of Spark's tasks.
    Return whether any of the rows can affect a group.
    """
    if ADMIN_OBSERVATIONS in new:
        update_marks(spark, settings.warehouse, new[ADMIN_OBSERVATIONS])
    rebuild_affected_reassignments(spark, settings.warehouse, new)
    history = {table: new[table] for table in FOLLOWED if table in new}
    if history:
        rebuild_affected(spark, settings, affected_groups(history))
    return bool(history)


def rebuild_affected(spark: SparkSession | None, settings: Settings, affected: pa.Table) -> None:
    """Bring silver up to date with new bronze rows.

    Args:
        spark: the session; in local mode, it may be None.
        settings: the warehouse, whose bronze already holds the new rows, and the options for building rows.
        affected: the table that `affected_groups` returned.
    """
    limits = group_limits(settings.warehouse, settings.limits)
    polled = cache(partial(polled_topics, settings.warehouse))  # Read at most once, and only if needed.
    admitted = limits.admitted(with_named(settings.warehouse, affected, polled))
    if admitted.num_rows:
        _rebuild(spark, settings, admitted, polled, is_few=affected.num_rows <= FEW_GROUPS)
    limits.report(_tables(spark, settings.warehouse))


def _tables(spark: SparkSession | None, warehouse: Path) -> Tables:
    return tables_at(warehouse, lambda: required(spark))


def _rebuild(
    whole: SparkSession | None,
    settings: Settings,
    new: pa.Table,
    polled: Callable[[], PolledTopics],
    *,
    is_few: bool,
) -> None:
    """Rebuild the groups in `new`. `is_few`: their rows are few if no history is long."""
    warehouse = settings.warehouse
    # Results are collected, because a plan that reads silver would be evaluated again after each table is written.
    spark = for_few_rows(whole) if whole and is_few else whole
    committing = _Change(*SilverInputs(spark=spark, warehouse=warehouse, affected=new).committing())
    # Arrow cannot join tables that have list columns.
    rest = new.drop_columns("committed").join(committing.new.select(GROUP), GROUP, join_type="left anti")
    if not rest.num_rows:
        replace_rows(spark, warehouse, GROUPS, committing.old, committing.new)
        return
    inputs = SilverInputs(spark=spark, warehouse=warehouse, affected=rest)
    points = inputs.restarts()
    making = Making.of(settings, polled())
    if is_elsewhere(warehouse) and not (is_few and inputs.has_few_rows(points)):
        many = SilverInputs(spark=whole, warehouse=warehouse, affected=rest)
        staged = StagedRebuild(many, points, making)
        _of_each_table(lambda table: staged.merge(table, (committing.old, committing.new)))
        return
    rebuilt = _rebuilt(inputs, points, making, settings.cores)

    made: dict[Table, pa.Table] = {}
    written: dict[Table, int] = {}

    def write(table: Table) -> None:
        new = rebuilt[table]
        change = _Change(inputs.replaced(table, points), new.few)
        if table is GROUPS:
            change = change.and_(committing)
        if new.files:
            replace_whole(warehouse, table, change.old, change.new, new.files)
            return
        old, come = unsettled(warehouse, change.old, change.new, table)
        # Otherwise, the table keeps rows from before the start of bronze, which were not made now.
        if old is change.old:
            made[table] = come
        written[table] = replace_rows(spark, warehouse, table, old, come)

    _of_each_table(write)
    if not inputs.is_local:
        return
    rebuilt_rows(warehouse).remember(points, made, written)
    if {STALLS, GROUPS} <= written.keys():
        pending_first_commits.rebuilt(warehouse, points, _classic(rebuilt[GROUPS].few), written[STALLS])


def _of_each_table(write: Callable[[Table], None]) -> None:
    """Write every table, those with resume points last, so that a crash before them leaves the old points valid.

    A row of `resume_points` refers to rows of `rebalances`.
    """
    last = (REBALANCES, RESUME_POINTS)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, (table for table in SILVER if table not in last)))
    for table in last:
        write(table)


def _classic(groups: pa.Table) -> pa.Table:
    protocol = pc.coalesce(groups["group_protocol"], GroupProtocol.CLASSIC.value)
    return groups.filter(pc.equal(protocol, GroupProtocol.CLASSIC.value)).select(GROUP)


@dataclass(frozen=True, slots=True)
class _Change:
    """Rows of one table: `new` rows replace `old` rows."""

    old: pa.Table
    new: pa.Table

    def and_(self, other: _Change) -> _Change:
        schema = self.new.schema
        parts = ((self.old, other.old), (self.new, other.new))
        old, new = (pa.concat_tables([part.select(schema.names).cast(schema) for part in both]) for both in parts)
        return _Change(old, new)


def _rebuilt(inputs: SilverInputs, points: pa.Table, making: Making, processes: int) -> Mapping[Table, NewRows]:
    """Return the silver rows that are built from these resume points, without executors by that many processes.

    The rows are in data files only if all rows that they replace may be removed.
    """
    warehouse = inputs.warehouse
    if (history := inputs.history(points)) is not None:
        found = making.rows(history, points)
    elif inputs.is_local:
        in_files = not has_settled(warehouse)
        return silver_by_tasks(inputs.spark, warehouse, points, making, in_files=in_files, processes=processes)
    else:
        collected = silver_frame(inputs.frames(points), making, points).toArrow()
        found = {table: rows_of(collected, table) for table in SILVER}
    return {table: NewRows(table=table, few=found[table]) for table in SILVER}


def affected_groups(new: Mapping[Table, NewRows]) -> pa.Table:
    """Return the groups that the new bronze rows refer to (`pipelines.silver.affected_groups.by_group`)."""
    with connect() as engine:
        for rows in new.values():
            rows.show(engine)
        return engine.sql(affected_sql(new, DUCKDB)).to_arrow_table().cast(AFFECTED)


def start(spark: SparkSession, settings: Settings, *, once: bool) -> None:
    """Follow bronze and rebuild the affected groups; with `once`, return when all existing rows are built.

    A stream that fails is restarted as in `Streams`, whose exceptions this raises.
    """
    warehouse = settings.warehouse
    create_tables(spark, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES))
    trigger = {"availableNow": True} if once else {"processingTime": f"{settings.trigger_seconds} seconds"}
    begin = [
        partial(start_groups, spark, settings, trigger),
        partial(start_reassignments, spark, warehouse, trigger),
        partial(start_marks, spark, warehouse, trigger),
    ]
    Streams(begin, on_failure=partial(report, what="Building"), is_endless=not once).wait()


def start_groups(spark: SparkSession, settings: Settings, trigger: Mapping[str, Any]) -> StreamingQuery:
    """Follow bronze and rebuild the affected groups."""
    warehouse = settings.warehouse
    progress = checkpoint_path(warehouse, "build")
    start_over_unless(progress, warehouse, FOLLOWED)
    new = {table: follow(spark, warehouse, table, begin_after(warehouse, table, progress)) for table in FOLLOWED}
    rows = [affected_frame(table, frame) for table, frame in new.items()]

    def build(batch: DataFrame, _: int) -> None:
        save_states(warehouse)
        rebuild_affected(batch.sparkSession, settings, by_group_frame(batch).toArrow())

    writer = (
        reduce(DataFrame.union, rows)
        .writeStream.foreachBatch(after_sync(progress, build))
        .option("checkpointLocation", place(progress))
    )
    return writer.trigger(**trigger).start()


def build_first(settings: Settings, job: str = "build") -> bool:
    """Build everything without Spark if no silver exists yet, in local mode; return whether that was so.

    If this process ends before the note of `job`, which is `build` or `up`, everything is built again.
    """
    warehouse, built = settings.warehouse, (*SILVER, *REASSIGNMENT_TABLES, MARKS)
    if needs_spark(warehouse, (*BRONZE, *built)):
        return False
    create_tables(None, warehouse, (*BRONZE, *built))
    progress = checkpoint_path(warehouse, job)
    if not is_first(warehouse, built, progress):
        return False
    versions = stored_versions(warehouse, FOLLOWED)
    rebuild_new(None, settings, all_rows(warehouse, FOLLOWED))
    write_note(progress, versions)
    return True


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Run `regroup build`."""
    _known(settings.warehouse)
    settings.hosts()  # Reports a missing key before Spark starts.
    try:
        if build_first(settings) and args.once:
            return 0
    except BrokenProcessPool as error:
        # The streams begin with everything again.
        report(lost_worker(error) or error, "Building")
    spark = session_of(settings, "build")
    start(spark, settings, once=args.once)
    return 0


def run_rebuild(settings: Settings, args: argparse.Namespace) -> int:
    """Run `regroup rebuild`."""
    _known(settings.warehouse)
    settings.hosts()  # Reports a missing key before Spark starts.
    spark = session_of(settings, "rebuild")
    if args.quarantine:
        # Records added to a file that `maintain` is merging would be lost.
        with acquire(settings.warehouse, "maintain"):
            say(f"{requeue(spark, settings.warehouse):,} quarantined records are now decoded")
            opened = reopen(spark, settings.warehouse, settings.limits)
            say(f"{opened:,} records whose assignments were too large before are now costed")
    rebuild_all(spark, settings)
    rebuild_all_reassignments(spark, settings.warehouse)
    rebuild_all_marks(spark, settings.warehouse)
    analyze(spark, settings, again=True)
    return 0


def _known(warehouse: Path) -> None:
    if not exists(warehouse, COORDINATOR_RECORDS):
        raise UserError(
            f"The warehouse {warehouse} has no table {COORDINATOR_RECORDS.name} yet: run `regroup ingest` or "
            "`regroup replay` first, or name another with --warehouse."
        )
