"""The changes between old and new rows of a table are the rows that differ, whatever their columns hold."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from jobs.tables.replace import changes
from pipelines.arrow_types import stored
from schemas.silver import GENERATIONS
from tests.whole_rows import whole

VALUES = st.fixed_dictionaries(
    {
        "member_count": st.none() | st.integers(0, 2),
        "assignor": st.none() | st.sampled_from(["range", ""]),
        "joined_member_ids": st.none() | st.lists(st.none() | st.sampled_from(["a", "b"]), max_size=2),
        "resources_moved": st.none() | st.integers(0, 1),
    }
)
TABLES = st.dictionaries(st.integers(1, 6), VALUES, max_size=6)


def rows(numbered) -> pa.Table:
    found = [
        {"cluster": "kafka", "group_id": "g", "incarnation": 0, "generation_id": number, "joined_at": 1_000 * number}
        | values
        for number, values in numbered.items()
    ]
    return stored([whole(row, GENERATIONS) for row in found], GENERATIONS)


def numbers(found: pa.Table) -> list[int]:
    return found["generation_id"].to_pylist()


@given(TABLES, TABLES)
def test_they_are_the_rows_that_differ(old, new) -> None:
    found = changes(rows(old), rows(new), GENERATIONS)
    changed = [number for number in new if number in old and old[number] != new[number]]
    assert numbers(found.added) == [number for number in new if number not in old]
    assert numbers(found.changed) == numbers(found.before) == changed
    assert numbers(found.gone) == [number for number in old if number not in new]
    assert found.before.equals(rows({number: old[number] for number in changed}))
    assert found.changed.equals(rows({number: new[number] for number in changed}))
    assert found.count == found.with_kinds().num_rows
    replaced = [1_000 * number for number in old if number not in new or number in changed]
    assert found.since(GENERATIONS) == (("joined_at", min(replaced)) if replaced else None)
