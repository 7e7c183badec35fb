"""`regroup analyze`: gold from silver, for the groups whose silver rows changed since the last time."""

from __future__ import annotations

import argparse
import time

from pyspark.sql import SparkSession

from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.gold.analyze_part import analyze_part
from jobs.spark.spark import session
from jobs.tables.create_tables import create_tables
from pipelines.gold.groups import INPUTS
from schemas.gold import GROUP_TABLES
from schemas.silver import GENERATIONS


def run(settings: Settings, args: argparse.Namespace) -> int:
    """Analyse until stopped; with `--once` until everything that is there has been analysed."""
    if not (settings.warehouse / GENERATIONS.name / "_delta_log").is_dir():
        raise UserError(
            f"The warehouse {settings.warehouse} has no table {GENERATIONS.name} yet: run `./regroup build` or "
            "`./regroup replay` first, or name another with --warehouse."
        )
    spark = session("regroup analyze", cores=settings.cores, driver_memory=settings.driver_memory)
    while True:
        analyze(spark, settings)
        if args.once:
            return 0
        time.sleep(settings.analyze_seconds)


def analyze(spark: SparkSession, settings: Settings, *, again: bool = False) -> int:
    """Bring gold up to date with silver; returns how many groups were analysed.

    With `again` every group is, as after a rebuild of silver.
    """
    create_tables(spark, settings.warehouse, (*INPUTS, *GROUP_TABLES))
    return analyze_part(spark, settings, again=again).analysed
