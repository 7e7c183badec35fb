"""A warehouse with a recorded history, read in several batches; each test has its own copy."""

from __future__ import annotations

import shutil
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from jobs.build import rebuild_all
from jobs.delta_io import append, create_tables, table_path
from jobs.replay import Capture, bronze_of, split
from jobs.settings import Settings
from pipelines.arrow_types import row_type
from schemas.bronze import BRONZE, COORDINATOR_EVENTS, COORDINATOR_RECORDS, COVERAGE, OFFSET_COMMITS
from schemas.silver import SILVER
from tests.silver.rebuilding import CAPTURES


@pytest.fixture(scope="session")
def recorded_once(spark, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "warehouse"
    capture = Capture(CAPTURES / "eager_churn")
    create_tables(spark, folder, (*BRONZE, *SILVER))
    rows = [bronze_of(batch, "kafka", capture.meta) for batch in split(capture, ("offsets", "log"), 6, None)]
    for table in (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS, COVERAGE):
        kind = pa.schema(list(row_type(table)))
        # A file a batch, as if each were a commit of its own.
        files = [spark.createDataFrame(pa.Table.from_pylist(part[table.name], kind)).coalesce(1) for part in rows]
        append(reduce(DataFrame.union, files), table_path(folder, table), app_id="recorded", version=1)
    rebuild_all(spark, folder, Settings().quiet_ms)
    return folder


@pytest.fixture
def recorded(recorded_once, warehouse) -> Path:
    shutil.copytree(recorded_once, warehouse)
    return warehouse
