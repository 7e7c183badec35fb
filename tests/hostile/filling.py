"""Fills a warehouse with records of a hostile client, and reads its tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.build import affected_groups, rebuild_affected
from jobs.config.settings import Settings
from jobs.tables.append import append
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from pipelines.bronze_batch import bronze_rows
from schemas.bronze import COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.tables import Table
from tests.hostile.records import source_records


def add(
    spark: SparkSession | None, settings: Settings, pairs: Sequence[tuple[bytes, bytes]], *, first_offset: int = 0
) -> None:
    """Append the records to bronze, and bring silver up to date."""
    records = source_records(pairs, first_offset=first_offset)
    found = bronze_rows(records, cluster="c", log_epoch=0, limits=settings.limits)
    new = {t: NewRows.of(t, found[t.name]) for t in (COORDINATOR_RECORDS, OFFSET_COMMITS) if found[t.name]}
    for each in new.values():
        append(spark, settings.warehouse, each)
    rebuild_affected(spark, settings, affected_groups(new))


def rows(warehouse: Path, table: Table) -> list[dict[str, Any]]:
    return DeltaTable(table_path(warehouse, table)).to_pyarrow_table().to_pylist()
