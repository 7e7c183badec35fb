"""`regroup analyze`: update gold for the groups whose silver rows changed since the last run."""

from __future__ import annotations

import argparse
import time

from pyspark.sql import SparkSession

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.gold.analyze_part import analyze_part
from jobs.gold.bounded_part import PART_ROWS
from jobs.spark.session_provider import provider
from jobs.spark.spark import session_of
from jobs.tables.catalog.keys import add_keys
from jobs.tables.catalog.views import create_views
from jobs.tables.create_tables import create_tables, needs_spark
from jobs.tables.table_facts import exists
from pipelines.gold.groups import INPUTS
from schemas.gold import CLUSTER_PATTERNS, GROUP_TABLES, STORMS
from schemas.silver import GENERATIONS

FEW_GROUPS = 200
"""Number of changed groups that this process analyzes itself in local mode, because Spark takes seconds to start."""


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
    """Bring gold up to date with silver. Start a session only for tables that Spark writes and for many groups."""
    if provider() is not None or needs_spark(settings.warehouse, (*INPUTS, *GROUP_TABLES, STORMS, CLUSTER_PATTERNS)):
        analyze(session_of(settings, "analyze"), settings)
        return
    create_tables(None, settings.warehouse, (*INPUTS, *GROUP_TABLES))
    if analyze_part(None, settings, most=FEW_GROUPS).left:
        _rest(session_of(settings, "analyze"), settings)


def analyze(spark: SparkSession | None, settings: Settings, *, again: bool = False) -> int:
    """Bring gold up to date with silver and return the number of groups analyzed.

    With `again`, analyze every group. A rebuild of silver needs that. Tables with names also get the views over them.
    In local mode no session is needed; this process then does the work of Spark's tasks. The groups are analyzed in
    parts of `PART_ROWS` rows, because this process compares old and new rows of a part.
    """
    create_tables(spark, settings.warehouse, (*INPUTS, *GROUP_TABLES))
    create_views(settings.warehouse)
    part = analyze_part(spark, settings, most_rows=PART_ROWS, again=again)
    return part.analysed + (_rest(spark, settings) if part.left else 0)


def _rest(spark: SparkSession | None, settings: Settings) -> int:
    """Analyze the groups that remain after a first part, in parts; return their number."""
    analysed = 0
    while True:
        part = analyze_part(spark, settings, most_rows=PART_ROWS, with_storms=False)
        analysed += part.analysed
        if not part.left:
            return analysed
