"""Changed rows since the last read of a table are found, and files that were only compacted are not read for that."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from jobs.retention.compact import Made, compact
from jobs.tables import changed_rows
from jobs.tables.changed_rows import TableSnapshot, changed
from jobs.tables.replace import replace_rows
from schemas.silver import GENERATIONS
from tests.jobs.test_local_rewrite import rows
from tests.maintain.test_compact import FILES, Here, generation, path  # noqa: F401 - a fixture

NAMES = GENERATIONS.names


def stand(folder) -> TableSnapshot:
    return TableSnapshot.of(DeltaTable(folder))


def since(folder, before: TableSnapshot) -> list[tuple[str, str, int]]:
    return changed(NAMES, "joined_at", before, stand(folder))


def at(number: int) -> int:
    return round(generation(number)["joined_at"][0].as_py().timestamp() * 1000)


@pytest.fixture
def read(monkeypatch) -> list[set[str]]:
    """The files that were read, by side."""
    found, rows_of = [], changed_rows._rows

    def watched(columns, paths):
        found.append({Path(each).name for each in paths})
        return rows_of(columns, paths)

    monkeypatch.setattr(changed_rows, "_rows", watched)
    return found


def test_a_table_that_was_only_put_together_is_not_read(warehouse, path, read) -> None:  # noqa: F811
    before = stand(path)
    assert Made(FILES, 1) == compact(warehouse, GENERATIONS, Here())
    assert [] == since(path, before)
    assert [] == read


def test_what_came_before_and_after_is_all_that_is_read(spark, warehouse, path, read) -> None:  # noqa: F811
    before, none = stand(path), rows(GENERATIONS, [])
    replace_rows(spark, warehouse, GENERATIONS, none, generation(FILES))
    compact(warehouse, GENERATIONS, Here())
    replace_rows(spark, warehouse, GENERATIONS, none, generation(FILES + 1))
    ((_, _, earliest),) = since(path, before)
    assert at(FILES) == earliest
    assert [0, 2] == [len(side) for side in read]


def test_a_change_of_what_was_put_together_is_found(spark, warehouse, path) -> None:  # noqa: F811
    before = stand(path)
    compact(warehouse, GENERATIONS, Here())
    replace_rows(spark, warehouse, GENERATIONS, generation(2), generation(2, member_count=99))
    ((_, _, earliest),) = since(path, before)
    assert at(2) == earliest
