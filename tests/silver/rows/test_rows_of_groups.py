"""Rows of silver that are kept as columns until Arrow reads them."""

from __future__ import annotations

import pytest

from pipelines.arrow_types import RowsOfGroups, stored
from pipelines.decoding.record_times import LAST_MS
from pipelines.rows_of_tables import by_table
from pipelines.silver.rows import rows_of_group
from schemas.silver import GENERATIONS, REBALANCES, STALLS
from tests.silver.handmade import START, consumer, generation, history

GROUP = {"cluster": "kafka", "group_id": "orders"}


def made():
    """The rows of a group that rebalanced twice."""
    names = ("a", "b")
    records = [
        generation(n, n * 60_000, [consumer(name, [at]) for at, name in enumerate(names[:n])]) for n in range(1, 3)
    ]
    return by_table(rows_of_group(history(records), 10_000))


@pytest.mark.parametrize("table", [STALLS, REBALANCES])
def test_they_are_the_rows_as_dicts(table) -> None:
    rows = made()[table.name]
    assert rows
    found = RowsOfGroups(table)
    found.add("kafka", "orders", rows)
    found.add("kafka", "quiet", [])
    found.add("kafka", "payments", rows[:1])
    assert len(rows) + 1 == len(found)
    expected = [GROUP | row for row in rows] + [GROUP | rows[0] | {"group_id": "payments"}]
    assert found.stored() == stored(expected, table)


def test_no_rows_are_a_table_without_rows() -> None:
    assert RowsOfGroups(STALLS).stored() == stored([], STALLS)


@pytest.mark.parametrize("stated", [LAST_MS + 1, 2**63 - 1])
def test_a_time_that_no_table_can_store_is_replaced_by_the_records_own(stated) -> None:
    record = generation(1, 60_000, [consumer("a", [0])])
    record["value"]["currentStateTimestamp"] = stated
    found = RowsOfGroups(GENERATIONS)
    found.add("kafka", "orders", by_table(rows_of_group(history([record]), 10_000))["generations"])
    assert [START + 60_005] == [round(row["joined_at"].timestamp() * 1000) for row in found.stored().to_pylist()]


def test_a_misspelt_column_is_refused() -> None:
    row = dict.fromkeys(STALLS.names[2:])
    misspelt = {f"{name}s" if name == "cause" else name: value for name, value in row.items()}
    for wrong in (misspelt, row | {"more": 1}, {name: None for name in row if name != "cause"}):
        with pytest.raises(ValueError, match=r"^A row of stalls lacks the columns "):
            RowsOfGroups(STALLS).add("kafka", "orders", [row, wrong])
