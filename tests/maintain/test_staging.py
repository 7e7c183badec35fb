"""`maintain` and the staging table of `build`: it does not grow, and a batch that reads it is not disturbed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name every PySpark reader expects

from jobs.retention.compact import FEW_FILES
from jobs.retention.tidy import size_of
from jobs.silver.staging import STAGING, StagedRows
from jobs.tables import named_tables
from jobs.tables.location import bind
from jobs.tables.paths import TableName, table_path
from schemas.silver import GENERATIONS
from schemas.thresholds import DAY_MS
from tests.maintain.test_maintain import maintained

FILES = FEW_FILES + 2


@pytest.fixture
def states(spark, tmp_path) -> Iterator[Path]:
    spark.sql(f"CREATE SCHEMA staging LOCATION '{tmp_path}/schema'")
    bind(tmp_path / "states", "spark_catalog.staging")
    yield tmp_path / "states"
    spark.sql("DROP SCHEMA staging CASCADE")


def staged(spark, states: Path, batch: int) -> StagedRows:
    """A batch that has written its rows, in more files than `maintain` leaves alone elsewhere."""
    rows = spark.range(FILES).repartitionByRange(FILES, "id")
    return StagedRows.write(
        spark, states, rows.select(F.struct(F.col("id"), F.lit(batch).alias("batch")).alias("generations"))
    )


def batch_of(rows: StagedRows) -> list[tuple[int, int]]:
    return sorted(tuple(row) for row in rows.of(GENERATIONS).collect())


def test_rows_that_a_batch_left_and_files_of_an_ended_one_are_removed_after_a_day(spark, states, tmp_path) -> None:
    name, folder = TableName(table_path(states, STAGING)), tmp_path / "schema" / STAGING.name
    first, second = (staged(spark, states, batch) for batch in (1, 2))
    now_ms = time.time_ns() // 1_000_000
    (line, _) = maintained(spark, states, now_ms=now_ms)
    assert "old files are now kept for 24 hours" in line
    assert FILES == size_of(states, STAGING)[0], "nothing is compacted"
    uncommitted = folder / "part-00000-of-a-batch-that-was-ended.parquet"
    uncommitted.touch()
    for file in (uncommitted, *folder.glob("*.parquet")):
        os.utime(file, times=(now_ms / 1000 - 90_000,) * 2)
    printed = maintained(spark, states, now_ms=now_ms + DAY_MS + 60_000)
    assert any(f"{FILES} rows of an earlier batch deleted" in line for line in printed)
    assert 0 == named_tables.frame(name).count()
    assert not uncommitted.exists()
    # Their versions were replaced less than a day before.
    for batch, rows in ((1, first), (2, second)):
        assert [(n, batch) for n in range(FILES)] == batch_of(rows)
    maintained(spark, states, vacuum_days=0.0)
    assert [] == list(folder.glob("*.parquet"))
    assert [(n, 3) for n in range(FILES)] == batch_of(staged(spark, states, 3))
