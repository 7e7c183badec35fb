"""Results of the queries, also when tables are missing."""

from __future__ import annotations

import ast
import inspect
import shutil

import pytest

from dashboards.queries import store as store_module
from dashboards.queries.store import Store
from dashboards.urlstate import Window, group_hash
from dashboards.views import sentences
from schemas.silver import SILVER
from testing import sample

HOUR = 3_600_000


@pytest.fixture
def store(warehouse, lake):
    return Store(lake(warehouse, fresh_seconds=0))


@pytest.fixture
def hour(now):
    return Window(now - HOUR, now + 1000, is_live=True)


def test_a_warehouse_that_is_not_there_answers_with_nothing(tmp_path, hour, lake):
    store = Store(lake(tmp_path / "absent"))
    assert ({}, None) == (store.versions(), store.span())
    assert ([], False) == store.fleet(hour)
    assert (None, None) == (store.group("c", "g"), store.rebalance("c", "g", 0, 1))
    assert 0 == store.totals(hour)["rebalances"]


def test_empty_tables_answer_with_nothing(tmp_path, hour, lake):
    sample.write(tmp_path, {})
    store = Store(lake(tmp_path))
    assert {table.name for table in SILVER} <= store.versions().keys()
    assert store.span() is None
    assert ([], []) == (store.fleet(hour).rows, store.cells(hour, 10, [("c", "g")]))


def test_a_table_that_disappears_is_a_state_and_one_that_returns_is_read_anew(tmp_path, now, hour, lake):
    sample.write(tmp_path, sample.static(now))
    store = Store(lake(tmp_path, fresh_seconds=0))
    assert 1 == len(store.fleet(hour).rows)
    shutil.rmtree(tmp_path / "groups")
    assert ([], None) == (store.fleet(hour).rows, store.span())
    sample.write(tmp_path, {"groups": sample.nightly(now)["groups"]})
    assert ["nightly-report"] == [g["group_id"] for g in store.fleet(hour).rows]


def test_a_gap_lasts_from_what_was_read_before_to_what_was_read_after(tmp_path, now, hour, lake):
    rows = sample.churny(now)
    partition = rows["generations"][0]["source_partition"]
    read = [
        (0, 100, None, now - 3_000_000, now - 2_000_000),
        (100, 150, "deleted before it was read", None, None),
        (150, 200, None, now - 500_000, now),
    ]
    rows["coverage"] = [
        sample.coverage(now)["coverage"][0]
        | {"source": "__consumer_offsets", "source_partition": p, "from_offset": a, "to_offset": b,
           "is_gap": why is not None, "gap_reason": why, "from_at": start, "to_at": end}
        for p in (partition, partition + 1)
        for a, b, why, start, end in read
    ]  # fmt: skip
    sample.write(tmp_path, rows)
    group = rows["groups"][0]
    found = Store(lake(tmp_path)).gaps(group["cluster"], group["group_id"], hour).rows
    assert [{"from_at": now - 2_000_000, "to_at": now - 500_000, "gap_reason": "deleted before it was read"}] == found


def test_the_fleet_lists_who_rebalances_now_first_and_then_who_lost_most(store, hour):
    rows = store.fleet(hour).rows
    assert ["payments-loader", "billing-worker"] == [g["group_id"] for g in rows[:2]]
    lost = [g["lost"] for g in rows[1:]]
    assert sorted(lost, reverse=True) == lost


def test_lost_is_the_sum_of_ended_stalls_that_somebody_was_there_to_lose(store, hour, now):
    stalls = [
        s
        for name in (sample.churny, sample.guessed, sample.cooperative, sample.static, sample.nightly, sample.stuck)
        for s in name(now)["stalls"]
    ] + sample.churny(now - 60_000, "imports-joiner", "imports", "imports")["stalls"]
    counted = [s for s in stalls if s["cause"] != "no_member" and s["stopped_ms"] is not None]
    totals = store.totals(hour)
    assert sum(s["stopped_ms"] for s in counted) / 1000 == pytest.approx(totals["lost"])
    assert sum(g["lost"] for g in store.fleet(hour).rows) == pytest.approx(totals["lost"])
    assert totals["lost_min"] <= totals["lost"] <= totals["lost_max"]
    assert any(s["cause"] == "no_member" for s in stalls)
    for name, value in totals.items():
        assert value == pytest.approx(store.fleet(hour, "billing").rows[0][f"all_{name}"])


def test_cells_add_up_to_the_rebalances_of_their_groups(store, hour):
    rows = store.fleet(hour).rows
    cells = store.cells(hour, 96, [(g["cluster"], g["group_id"]) for g in rows])
    assert sum(g["rebalances"] for g in rows) == sum(c["rebalances"] for c in cells)
    assert all(0 <= c["bin"] < 96 for c in cells)


def test_a_range_begins_with_the_generation_in_force(store, hour, now):
    everything = store.generations("prod-eu", "billing-worker", hour).rows
    late = Window(everything[2]["joined_at"] + 1, now, is_live=False)
    assert [8, 7, 6] == [g["generation_id"] for g in store.generations("prod-eu", "billing-worker", late).rows]


def test_the_generation_in_force_may_be_days_old(tmp_path, now, lake):
    rows = sample.static(now)
    newest = max(rows["generations"], key=lambda g: g["joined_at"])
    sample.write(tmp_path, rows)
    store, key = Store(lake(tmp_path)), (newest["cluster"], newest["group_id"])
    for days in (1, 3, 300):
        later = Window(now + days * 24 * HOUR, now + (days + 1) * 24 * HOUR, is_live=False)
        assert [newest["generation_id"]] == [g["generation_id"] for g in store.generations(*key, later).rows]


def test_a_rebalance_comes_with_its_neighbours_members_and_stalls(store):
    found = store.rebalance("prod-eu", "billing-worker", 0, 5)
    assert (4, 6) == (found.previous["generation_id"], found.following["generation_id"])
    assert (1, 2, 12) == (len(found.members), len(found.previous_members), len(found.stalls.rows))
    assert ("session_expired", 5) == (found.generation["trigger"], found.episode["first_generation_id"])
    assert store.rebalance("prod-eu", "billing-worker", 0, 99) is None


def test_a_search_is_a_plain_substring_in_any_case(store, hour):
    assert ["billing-worker"] == [g["group_id"] for g in store.fleet(hour, "BILLING").rows]
    for text in ("%", "_", "' OR 1=1 --", "\\", "$q", "(", "billing.worker"):
        assert [] == store.fleet(hour, text).rows


def test_hostile_ids_are_found_as_they_are_and_only_they(tmp_path, now, hour, lake):
    ids = ["'; DROP TABLE groups; --", '" OR ""="', "$group", "${x}", "a\nb", "ünï", "x" * 3000, "", " "]
    sample.write(tmp_path, sample.hostile(now, ids))
    store = Store(lake(tmp_path))
    for text in ids:
        assert text == store.group("prod-eu", text)["group_id"]
        assert 2 == len(store.generations("prod-eu", text, hour).rows)
        assert text == store.rebalance("prod-eu", text, 0, 2).generation["group_id"]
    assert ids[6] == store.group_by_hash("prod-eu", group_hash(ids[6]))
    assert len(ids) == store.span().groups


def test_answers_change_with_the_table_and_not_without(tmp_path, now, hour, lake):
    sample.write(tmp_path, sample.static(now))
    store = Store(lake(tmp_path, fresh_seconds=0))
    before, first = dict(store.versions()), store.fleet(hour)
    assert store.fleet(hour) is first
    sample.write(tmp_path, sample.nightly(now))
    assert before != store.versions()
    assert 2 == len(store.fleet(hour).rows)


def test_an_answer_is_capped_and_says_so(warehouse, hour, monkeypatch, lake):
    monkeypatch.setattr(store_module, "FLEET_ROWS", 3)
    found = Store(lake(warehouse)).fleet(hour)
    assert (3, True) == (len(found.rows), found.is_capped)


def test_reading_writes_nothing(warehouse, hour, lake):
    before = sorted((p, p.stat().st_mtime_ns) for p in warehouse.rglob("*"))
    store = Store(lake(warehouse))
    store.fleet(hour)
    store.rebalance("prod-eu", "billing-worker", 0, 5)
    assert before == sorted((p, p.stat().st_mtime_ns) for p in warehouse.rglob("*"))


def test_no_query_is_put_together_from_text():
    tree = ast.parse(inspect.getsource(store_module))
    assert [] == [n for n in ast.walk(tree) if isinstance(n, ast.JoinedStr | ast.Mod)]
    assert [] == [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr in ("format", "replace", "join")]


def test_the_number_of_generations_is_known_if_not_all_are_read(store, hour, monkeypatch):
    every = store.generations("prod-eu", "billing-worker", hour).rows
    monkeypatch.setattr(store_module, "GENERATION_ROWS", 3)
    found = store.generations("prod-eu", "billing-worker", hour)
    assert (every[:3], True) == (found.rows, found.is_capped)
    inside = [g for g in every if hour.start <= g["joined_at"] < hour.end]
    assert {len(inside)} == {g["window_generations"] for g in every}
    assert f"{len(inside)} rebalances, of the newest 3 of them " in sentences.group(found.rows, None)
    assert f"{len(inside)} rebalances, ≈" in sentences.group(inside, None)


def test_a_generation_of_a_loop_is_found_in_the_row_that_folded_count_it(tmp_path, now, hour, lake):
    rows = sample.churny(now)
    fourth = next(g for g in rows["generations"] if g["generation_id"] == 4)
    for name in ("generations", "generation_members", "group_events", "stalls", "rebalances"):
        for row in rows[name]:
            for key in ("generation_id", "first_generation_id", "last_generation_id"):
                if (row.get(key) or 0) > 4:
                    row[key] += 499
    fourth |= {"folded_count": 500, "last_generation_id": 503, "last_completed_at": fourth["completed_at"] + 2_500}
    sample.write(tmp_path, rows)
    store = Store(lake(tmp_path))
    for generation in (4, 5, 503):
        found = store.rebalance("prod-eu", "billing-worker", 0, generation)
        assert (3, 4, 504) == tuple(row["generation_id"] for row in (found.previous, found.generation, found.following))
        assert {4} == {m["generation_id"] for m in found.members}
    assert 504 == store.rebalance("prod-eu", "billing-worker", 0, 504).generation["generation_id"]
    assert store.rebalance("prod-eu", "billing-worker", 0, 999) is None
    assert (
        500 + 7
        == store.totals(hour)["rebalances"]
        == sum(cell["rebalances"] for cell in store.cells(hour, 60_000, [("prod-eu", "billing-worker")]))
    )
    assert [500 + 7] == [row["rebalances"] for row in store.fleet(hour).rows]
