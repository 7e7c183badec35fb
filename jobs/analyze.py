"""`regroup analyze`: update gold for the groups whose silver rows changed since the last run."""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from functools import partial

from pyspark.sql import SparkSession

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.config.terminal import say
from jobs.gold.analyze_part import analyze_part
from jobs.gold.bounded_part import PART_ROWS
from jobs.gold.replaying import ReplayingPool
from jobs.spark.session_provider import provider
from jobs.spark.spark import session_of
from jobs.tables.catalog.keys import add_keys
from jobs.tables.catalog.views import create_views
from jobs.tables.create_tables import create_tables, needs_spark
from jobs.tables.table_facts import exists
from pipelines.gold.groups import INPUTS
from schemas.gold import CLUSTER_PATTERNS, GROUP_TABLES, STORMS
from schemas.silver import GENERATIONS
from schemas.written import count


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Analyze new silver rows until stopped; with `--once`, return when all existing rows are analyzed.

    Raises:
        UserError: the warehouse has no silver table yet.
    """
    if not exists(settings.warehouse, GENERATIONS):
        raise UserError(
            f"The warehouse {settings.warehouse} has no table {GENERATIONS.name} yet: run `regroup build` or "
            "`regroup replay` first, or name another with --warehouse."
        )
    _update(settings)
    add_keys(settings.warehouse)
    while not args.once:
        time.sleep(settings.analyze_seconds)
        _update(settings)
    return 0


def _update(settings: Settings) -> None:
    """Bring gold up to date with silver. Start a session only for tables that Spark writes."""
    analyze(None if _is_local(settings) else session_of(settings, "analyze"), settings)


def _is_local(settings: Settings) -> bool:
    """Return whether nothing of the analysis needs Spark."""
    tables = (*INPUTS, *GROUP_TABLES, STORMS, CLUSTER_PATTERNS)
    return provider() is None and not needs_spark(settings.warehouse, tables)


def analyze(spark: SparkSession | None, settings: Settings, *, again: bool = False) -> int:
    """Bring gold up to date with silver and return the number of groups analyzed.

    With `again`, analyze every group. A rebuild of silver needs that. Tables with names also get the views over them.
    In local mode no session is needed: this process, or several others for many groups, do the work of Spark's tasks.
    The groups are analyzed in parts of `PART_ROWS` rows, because this process compares old and new rows of a part. A
    line is printed after each part but the last.
    """
    create_tables(spark, settings.warehouse, (*INPUTS, *GROUP_TABLES))
    create_views(settings.warehouse)
    with ReplayingPool(settings.cores) if _is_local(settings) else nullcontext() as replaying:
        analyze_next = partial(analyze_part, spark, settings, most_rows=PART_ROWS, replaying=replaying)
        part = analyze_next(again=again)
        analysed = part.analysed
        while part.left:
            say(f"{count(analysed, 'group')} analyzed, {part.left:,} left")
            part = analyze_next(with_storms=False)
            analysed += part.analysed
    return analysed
