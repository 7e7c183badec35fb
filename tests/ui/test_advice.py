"""The page that says what to change, what it would save, and when to leave a group alone."""

from __future__ import annotations

import pyarrow as pa
import pytest
from dash.development.base_component import Component
from deltalake import write_deltalake

from dashboards.lake import LocalLake
from dashboards.pages.advice import render
from dashboards.store import Store
from dashboards.urlstate import parse
from pipelines.arrow_types import row_type
from pipelines.gold.frame import as_stored
from pipelines.gold.latencies import Broker
from pipelines.gold.rows import Terms, gold_rows
from schemas.gold import ADVICE
from tests.gold.histories import START, EagerGroup


def words(part) -> str:
    if isinstance(part, list | tuple):
        return " | ".join(words(each) for each in part)
    return words(part.children) if isinstance(part, Component) and hasattr(part, "children") else str(part or "")


def rows(group_id: str, group: EagerGroup) -> list[dict]:
    known = {"broker": Broker(), "terms": Terms(), "since_ms": 0, "until_ms": START + 1}
    return [as_stored(row, ADVICE) for row in gold_rows("kafka", group_id, group.silver(), **known)["advice"]]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    folder = tmp_path_factory.mktemp("advised")
    slow = EagerGroup(members=10, partitions=50, notice_ms=2_800, callback_ms=20_000)
    fast = EagerGroup()
    for index in range(10):
        slow.restarts(index, 100_000 + index * 100_000, 60_000)
        fast.restarts(index % 3, 100_000 + index * 100_000, 5_000)
    found = [*rows("a-fast-group", fast), *rows("<b>slow</b>", slow)]
    write_deltalake(f"{folder}/advice", pa.Table.from_struct_array(pa.array(found, type=row_type(ADVICE))))
    return Store(LocalLake(folder))


def test_the_group_that_would_save_most_comes_first_with_what_to_paste(store) -> None:
    text = words(render(store, parse("/advice", ""), 0))
    assert text.index("<b>slow</b>") < text.index("a-fast-group")
    for said in (
        "1 group of 2 should change",
        "static membership",
        "group.instance.id=",
        "fieldPath: metadata.name",
        "unknown: ",
    ):
        assert said in text, said


def test_a_group_that_is_well_as_it_is_is_told_to_stay_so(store) -> None:
    text = words(render(store, parse("/advice", "?q=fast"), 0))
    assert "slow" not in text
    assert "leave it as it is" in text


def test_no_analysis_yet_says_so(tmp_path) -> None:
    assert "No analysis has run yet" in words(render(Store(LocalLake(tmp_path)), parse("/advice", ""), 0))
