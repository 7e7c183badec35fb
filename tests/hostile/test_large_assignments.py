"""A leader may assign any partitions to anybody: too large or nonexistent assignments are marked and cost nothing."""

from __future__ import annotations

import json

import pytest

from pipelines.bronze_batch import bronze_rows
from pipelines.limits import NAME_BYTES
from pipelines.long_names import parsed, shortened
from pipelines.silver.frame import PolledTopics, _history
from pipelines.silver.rows import silver_rows
from schemas.bronze import COORDINATOR_RECORDS
from tests.hostile.records import TOPIC, generation, owning, partitions, source_records

REAL = partitions(range(12))


def silver(pairs, *, counts=None) -> dict[str, list[dict]]:
    rows = bronze_rows(source_records(pairs), cluster="c", log_epoch=0)[COORDINATOR_RECORDS.name]
    for row in rows:
        row["record_at"] = round(row["record_at"].timestamp() * 1000)
    polled = PolledTopics({}, {"c": counts or {}})
    history = _history("c", "g", {"record": rows, "run": [], "event": []}, polled, NAME_BYTES)
    return silver_rows(history, 10_000)


def test_an_assignment_of_250_000_partitions_is_kept_counted_and_not_costed() -> None:
    hostile = generation(2, partitions(range(250_000)))
    assert len(hostile[1]) > 1_000_000
    pairs = [generation(1, REAL), hostile, generation(3, REAL), generation(4, REAL)]
    raw = bronze_rows(source_records(pairs), cluster="c", log_epoch=0)[COORDINATOR_RECORDS.name]
    assert hostile[1] == raw[1]["raw_value"]
    assert len(raw[1]["body"]) < 2_000
    rows = silver(pairs)
    assert [None, "too_large", "unknown_before", None] == [g["not_costed"] for g in rows["generations"]]
    assert [None, 250_000, None, None] == [g["resources_not_costed"] for g in rows["generations"]]
    assert [12, None, 12, 12] == [g["resources_assigned"] for g in rows["generations"]]
    assert [None] == [m["assigned"] for m in rows["generation_members"] if m["generation_id"] == 2]
    assert {4} == {s["generation_id"] for s in rows["stalls"]}, "only the last one stopped what is known"
    assert 12 == len(rows["stalls"])


def test_owned_partitions_that_are_too_many_leave_the_generation_without_a_cost() -> None:
    rows = silver([generation(1, REAL), generation(2, REAL, subscription=owning(range(100_000)))])
    assert [None, "too_large"] == [g["not_costed"] for g in rows["generations"]]
    assert [] == rows["stalls"]


def test_an_open_stop_is_void_where_an_assignment_is_not_known() -> None:
    """The resource may have been assigned; to claim that it still has no owner would be a guess."""
    few, hostile = partitions(range(6)), partitions(range(60_000))
    rows = silver([generation(1, REAL), generation(2, few), generation(3, hostile), generation(4, REAL)])
    assert [s["index"] for s in rows["stalls"] if s["resumed_generation_id"] is None] == []
    assert {2} == {s["generation_id"] for s in rows["stalls"]}
    again = [e for e in rows["rebalances"] if e["base_offset"] is not None]
    assert again, "a rebuild may still go on after it"


@pytest.mark.parametrize("number", [1, 100, 5_000, 49_000])
def test_partitions_that_polls_say_do_not_exist_cost_nothing(number) -> None:
    hostile = partitions([*range(12), *range(1_000_000, 1_000_000 + number)])
    pairs = [generation(1, hostile), generation(2, hostile), generation(3, REAL)]
    rows = silver(pairs, counts={TOPIC: 12})
    assert 2 * 12 == len(rows["stalls"])
    assert ["no_such_partition", "no_such_partition", None] == [g["not_costed"] for g in rows["generations"]]
    assert [number, number, None] == [g["resources_not_costed"] for g in rows["generations"]]
    assert [{"name": TOPIC, "index": 1_000_000}] == rows["generations"][0]["missing_partitions"]
    assert [12, 12, 12] == [g["resources_assigned"] for g in rows["generations"]]


def test_a_topic_that_does_not_exist_costs_nothing() -> None:
    invented = partitions(range(1_000), topic="nobody-made-this")
    rows = silver([generation(1, invented), generation(2, invented)], counts={"nobody-made-this": 0, TOPIC: 12})
    assert [] == rows["stalls"]


def test_a_topic_that_no_poll_names_is_costed() -> None:
    rows = silver([generation(1, REAL), generation(2, REAL)], counts={"another": 3})
    assert 12 == len(rows["stalls"])


@pytest.mark.parametrize("name", ["c" * 32_000, "é" * 16_000, '"' * 16_000, "\\" * 16_000, "\u2028" * 10_000])
def test_long_names_in_records_are_cut_and_stay_distinct(name) -> None:
    rows = silver([generation(1, REAL, client=name), generation(2, REAL, client=name)])
    longest = max(
        len(str(value).encode()) for m in rows["generation_members"] for value in m.values() if isinstance(value, str)
    )
    assert longest <= 1_024
    assert 2 == len({m["member_id"] for m in rows["generation_members"]})
    assert 1 == len({m["client_id"] for m in rows["generation_members"]})


def test_text_is_cut_only_above_the_limit() -> None:
    body = {"a": "x" * 1_024, "b": ["y" * 1_025], "z" * 2_000: {"n": [1, 2]}}
    found = parsed(json.dumps(body), 1_024)
    assert body["a"] == found["a"]
    assert shortened("y" * 1_025, 1_024) == found["b"][0]
    assert 1_024 == len(found["b"][0].encode())
    assert [1, 2] == found[shortened("z" * 2_000, 1_024)]["n"]
