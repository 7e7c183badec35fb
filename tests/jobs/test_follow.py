"""`build` continues to follow bronze after rows were deleted to be read again."""

from __future__ import annotations

import pyarrow as pa
from delta.tables import DeltaTable

from jobs.build import start
from jobs.config.settings import Settings
from jobs.replay import Capture, bronze_of, split
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.arrow_types import row_type
from schemas.bronze import BRONZE, COORDINATOR_RECORDS
from schemas.silver import SILVER
from testing.recordings import CAPTURES
from tests.jobs.conftest import CLUSTER, differing, rebuilt, silver


def test_rows_taken_out_of_bronze_and_read_again_do_not_stop_build(spark, warehouse) -> None:
    create_tables(spark, warehouse, (*BRONZE, *SILVER))
    capture, settings = Capture(CAPTURES / "share_registry"), Settings(warehouse=warehouse)
    (batch,) = split(capture, ("offsets",), 1, None)
    rows = bronze_of(batch, CLUSTER, capture.meta)[COORDINATOR_RECORDS.name]
    frame = spark.createDataFrame(pa.Table.from_struct_array(pa.array(rows, row_type(COORDINATOR_RECORDS))))
    path = table_path(warehouse, COORDINATOR_RECORDS)
    frame.coalesce(1).write.format("delta").mode("append").save(path)
    start(spark, settings, once=True)
    newest = f"source_offset >= {max(row['source_offset'] for row in rows) // 2}"
    DeltaTable.forPath(spark, path).delete(newest)
    frame.where(newest).write.format("delta").mode("append").save(path)
    start(spark, settings, once=True)
    found = silver(warehouse)
    assert differing(rebuilt(spark, warehouse), found) == {}
