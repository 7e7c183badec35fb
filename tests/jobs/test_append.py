"""Rows are appended once, however often it is tried: without Spark in local mode, with Spark on Databricks."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from jobs.tables.append import Once, append, append_frame
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import read
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from jobs.tables.transactions import is_local
from pipelines.arrow_types import row_type
from schemas.bronze import COORDINATOR_EVENTS, OFFSET_COMMITS, QUARANTINE
from testing.warehouses.volume import refuse_in

AT = datetime(2026, 11, 1, tzinfo=UTC)
VALUES = {
    COORDINATOR_EVENTS: {"line_no": 1, "event_at": AT},
    OFFSET_COMMITS: {"first_offset": 1 << 40, "last_commit_at": AT, "is_tombstone": False},
    QUARANTINE: {"source_offset": 7, "raw_key": b"\0\xff", "raw_value": None},
}


@pytest.fixture(params=["here", "on a volume"])
def is_here(request, monkeypatch) -> bool:
    if request.param == "on a volume":
        refuse_in(monkeypatch)
    return request.param == "here"


@pytest.mark.parametrize("is_by_spark", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("table", VALUES, ids=lambda table: table.name)
def test_a_version_that_is_there_writes_nothing(spark, warehouse, is_here, table, is_by_spark) -> None:
    create_tables(spark, warehouse, (table,))
    path, kind = table_path(warehouse, table), row_type(table)
    assert is_local(path) == is_here
    keys = {name: "key" for name in table.key if kind.field(name).type == pa.string()}
    keys |= {name: 0 for name in table.key if pa.types.is_integer(kind.field(name).type)}
    one = pa.Table.from_pylist([keys | VALUES[table]], pa.schema(kind))

    def add(once: Once | None, *, is_by_spark: bool = is_by_spark) -> None:
        if is_by_spark:
            append_frame(spark.createDataFrame(one), warehouse, table, once)
        else:
            append(spark, warehouse, NewRows(table=table, few=one), once)

    for version in (1, 1, 2, 2, 1):
        add(Once("reader", version))
    add(Once("another", 1))
    # The next batch may have many rows although this one had few, and it is also repeated after a crash.
    add(Once("another", 1), is_by_spark=not is_by_spark)
    assert 3 == DeltaTable(path).to_pyarrow_table().num_rows
    found = read(spark, warehouse, table).toArrow().select(table.names).cast(one.schema)
    assert found.to_pylist() == one.to_pylist() * 3
    add(None)
    add(None)
    assert 5 == DeltaTable(path).to_pyarrow_table().num_rows
