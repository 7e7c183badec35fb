"""Rows of a Delta table are replaced, in each table in the suitable way; other rows stay unchanged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from jobs.tables.replace import replace_rows
from jobs.tables.transactions import is_local
from pipelines.arrow_types import row_type
from schemas.silver import GENERATIONS, GROUPS
from testing.warehouses.volume import refuse_in

START = datetime(2026, 11, 1, tzinfo=UTC)


def rows(table, numbers, **values) -> pa.Table:
    """One row for each number: a group, or a generation of one group."""
    described = []
    for number in numbers:
        row = {"cluster": "kafka", "group_id": f"group-{number}", **values}
        if table is GENERATIONS:
            began = START + timedelta(hours=number)
            row |= {"group_id": "group", "incarnation": 0, "generation_id": number, "joined_at": began}
        described.append(row)
    return pa.Table.from_struct_array(pa.array(described, row_type(table)))


@pytest.fixture(params=["here", "on a volume"], autouse=True)
def place(request, monkeypatch) -> None:
    """Tables are created, and therefore written, differently on Databricks."""
    if request.param == "on a volume":
        refuse_in(monkeypatch)


def written(path, before) -> int:
    """Return the number of rows in the files that were added to a table."""
    files = DeltaTable(path).get_add_actions(flatten=True)
    rows = zip(files["path"].to_pylist(), files["num_records"].to_pylist(), strict=True)
    return sum(number for file, number in rows if f"{path}/{file}" not in before)


def found(path) -> list[str]:
    return sorted(map(repr, DeltaTable(path).to_pyarrow_table().to_pylist()))


@pytest.mark.parametrize("table", [GROUPS, GENERATIONS])
def test_rows_are_added_changed_and_taken_away(spark, warehouse, table) -> None:
    create_tables(spark, warehouse, (table,))
    path, none = table_path(warehouse, table), rows(table, [])
    assert replace_rows(spark, warehouse, table, none, rows(table, range(3))) == 3
    assert replace_rows(spark, warehouse, table, none, rows(table, range(3, 8))) == 5
    before = DeltaTable(path).version()
    changed = rows(table, [6], member_count=9)
    assert (
        replace_rows(spark, warehouse, table, rows(table, [5, 6, 7]), pa.concat_tables([changed, rows(table, [7, 8])]))
        == 3
    )
    expected = pa.concat_tables([rows(table, [0, 1, 2, 3, 4, 7, 8]), changed])
    assert found(path) == sorted(map(repr, expected.to_pylist()))
    commits = 1 if is_local(path) or table is GROUPS else 2
    assert DeltaTable(path).version() == before + commits


def test_files_that_end_before_the_rows_that_change_are_left_alone(spark, warehouse) -> None:
    """Otherwise, a table with months of rows would be read for every batch."""
    create_tables(spark, warehouse, (GENERATIONS,))
    path, none = table_path(warehouse, GENERATIONS), rows(GENERATIONS, [])
    replace_rows(spark, warehouse, GENERATIONS, none, rows(GENERATIONS, range(1_000)))
    (old,) = DeltaTable(path).file_uris()
    replace_rows(spark, warehouse, GENERATIONS, none, rows(GENERATIONS, range(1_000, 1_010)))
    before = set(DeltaTable(path).file_uris())
    replace_rows(spark, warehouse, GENERATIONS, rows(GENERATIONS, [1_009]), rows(GENERATIONS, [1_009], member_count=2))
    after = set(DeltaTable(path).file_uris())
    assert old in after
    assert len(before - after) == 1


def test_rows_that_are_over_are_not_written_again(spark, warehouse) -> None:
    """Each batch ends the generations of the one before. The rows that it writes must not grow with the table."""
    create_tables(spark, warehouse, (GENERATIONS,))
    path = table_path(warehouse, GENERATIONS)
    open_rows = rows(GENERATIONS, [])
    described = []
    for batch in range(5):
        over = rows(GENERATIONS, range(batch * 10 - open_rows.num_rows, batch * 10), member_count=1)
        new = rows(GENERATIONS, range(batch * 10, batch * 10 + 10))
        before = set(DeltaTable(path).file_uris())
        replace_rows(spark, warehouse, GENERATIONS, open_rows, pa.concat_tables([over, new]))
        described.append(written(path, before))
        open_rows = new
    assert described == [10, 20, 20, 20, 20]
    assert len(found(path)) == 50
