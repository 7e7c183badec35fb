"""Whatever files a version has, a query reads all of them, once, and nothing else."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dashboards.lake.lake import LakeError, LocalLake
from dashboards.lake.query_cache import UNUSED_S, QueryCache, Rows
from testing import sample

GROUPS = "SELECT group_id, member_count FROM groups ORDER BY group_id LIMIT $cap"


def write(folder, *ids, **more):
    rows = {"cluster": ["c"] * len(ids), "group_id": list(ids)} | {k: [v] * len(ids) for k, v in more.items()}
    write_deltalake(f"{folder}/groups", pa.table(rows), mode="append", schema_mode="merge")


def asked(lake, sql=GROUPS):
    return [tuple(row.values()) for row in lake.query(sql, ["groups"], 10, {}).rows]


def test_a_column_that_older_files_do_not_have_is_null_there(tmp_path):
    write(tmp_path, "old")
    write(tmp_path, "new", member_count=3)
    assert [("new", 3), ("old", None)] == asked(LocalLake(tmp_path))


def test_a_column_that_no_file_has_is_null_and_of_its_type(tmp_path):
    write(tmp_path, "old")
    DeltaTable(f"{tmp_path}/groups").alter.add_columns(
        [_field("member_count", "integer"), _field("seen_at", "timestamp")]
    )
    sql = "SELECT group_id, coalesce(member_count, 7), coalesce(seen_at, now()) > '2020-01-01'::TIMESTAMPTZ FROM groups LIMIT $cap"
    assert [("old", 7, True)] == asked(LocalLake(tmp_path), sql)


def _field(name, kind):
    from deltalake import Field
    from deltalake.schema import PrimitiveType

    return Field(name, PrimitiveType(kind))


@pytest.mark.parametrize("name", ["a b", "it's", "a*b?", "ü"])
def test_a_warehouse_may_have_any_name(tmp_path, name):
    write(tmp_path / name, "g", member_count=1)
    assert [("g", 1)] == asked(LocalLake(tmp_path / name))


def test_files_that_were_vacuumed_are_looked_for_again(tmp_path):
    write(tmp_path, "a", member_count=1)
    lake = LocalLake(tmp_path, fresh_seconds=3600)
    lake.versions()
    write(tmp_path, "b", member_count=2)
    table = DeltaTable(f"{tmp_path}/groups")
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert [("a", 1), ("b", 2)] == asked(lake)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname') LIMIT $cap",
        "SELECT * FROM glob('/etc/*') LIMIT $cap",
        "COPY (SELECT 1) TO '/tmp/regroup-written'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
    ],
)
def test_nothing_but_the_warehouse_can_be_reached(tmp_path, sql):
    write(tmp_path, "a")
    with pytest.raises(duckdb.Error):
        LocalLake(tmp_path).query(sql, ["groups"], 1, {})


def test_a_query_that_needs_too_much_memory_is_logged_with_its_use(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("dashboards.lake.lake.MEMORY", "40MB")
    write(tmp_path, "a")
    sql = "SELECT a.range + b.range AS n FROM range(4000) a, range(4000) b, groups GROUP BY n, a.range ORDER BY n % 7 LIMIT $cap"
    with pytest.raises(LakeError, match="needs more memory"):
        LocalLake(tmp_path).query(sql, ["groups"], 1_000_000, {})
    (record,) = caplog.records
    assert "Out of Memory Error" in record.getMessage()
    assert "left in use: " in record.getMessage()
    assert "query: SELECT a.range" in record.getMessage()


def test_an_instance_that_answered_many_queries_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("dashboards.lake.lake.RENEWED_AFTER", 3)
    write(tmp_path, "a")
    lake, instances = LocalLake(tmp_path, fresh_seconds=0), []
    for n in range(7):
        assert [(n,)] == asked(lake, f"SELECT {n} FROM groups LIMIT $cap")
        instances.append(lake._duckdb)
    assert [True, True, True, False, False, False, False] == [each is instances[0] for each in instances]
    assert instances[3] is instances[5]
    assert instances[6] is not instances[3]


def test_a_time_means_the_same_wherever_the_pages_run(tmp_path, monkeypatch, now):
    sample.write(tmp_path, sample.static(now))
    sql = (
        "SELECT CAST(TIMESTAMPTZ '2026-01-01 00:00:00' = TIMESTAMP '2026-01-01 00:00:00' AS INT) FROM groups LIMIT $cap"
    )
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert [(1,)] == asked(LocalLake(tmp_path), sql)


def test_who_asks_the_same_at_once_is_answered_by_one_question():
    responses, release, asked = QueryCache(100), threading.Event(), []

    def ask():
        asked.append(1)
        assert release.wait(120)
        return Rows([{"a": 1}], is_capped=False)

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(responses.get, "key", {}, ask) for _ in range(8)]
        release.set()
        assert 1 == len({id(each.result()) for each in waiting})
    assert [1] == asked


def test_many_may_ask_different_questions_at_once(tmp_path):
    write(tmp_path, *(f"group {n}" for n in range(50)), member_count=1)
    lake = LocalLake(tmp_path)
    sql = "SELECT group_id FROM groups WHERE group_id = $id LIMIT $cap"

    def ask(n):
        return lake.query(sql, ["groups"], 5, {"id": f"group {n}"}).rows

    with ThreadPoolExecutor(8) as pool:
        assert [[{"group_id": f"group {n}"}] for n in range(50)] == list(pool.map(ask, range(50)))


def test_a_question_that_failed_is_asked_again():
    responses = QueryCache(100)
    with pytest.raises(ZeroDivisionError):
        responses.get("key", {}, lambda: 1 // 0)
    assert [] == responses.get("key", {}, lambda: Rows([], is_capped=False)).rows


def test_kept_answers_have_an_upper_size():
    responses, asked = QueryCache(25), []

    def ask(key):
        asked.append(key)
        return Rows([{"a": 1, "b": 2}] * 5, is_capped=False)

    for key in ("one", "two", "three", "three", "two", "one"):
        responses.get(key, {}, lambda key=key: ask(key))
    assert ["one", "two", "three", "one"] == asked


def test_a_result_that_nobody_asks_for_again_is_dropped():
    seconds, asked = [0.0], []
    responses = QueryCache(1_000_000, clock=lambda: seconds[0])

    def ask(key):
        asked.append(key)
        return Rows([{"a": 1}], is_capped=False)

    for key in ("often", "once", "often", "later", "often", "once"):
        responses.get(key, {}, lambda key=key: ask(key))
        seconds[0] += 0.4 * UNUSED_S
    assert ["often", "once", "later", "once"] == asked


def test_results_of_earlier_versions_are_dropped():
    class Version:
        """The files of a version."""

    responses, versions = QueryCache(1_000_000), []
    for n in range(50):
        groups, health = Version(), Version()
        versions += [weakref.ref(groups), weakref.ref(health)]
        responses.get(("health", n), {"health": health}, lambda: Rows([{"a": 1}], is_capped=False))
        responses.get(("both", n), {"groups": groups, "health": health}, lambda: Rows([], is_capped=False))
    del groups, health
    assert 2 == sum(version() is not None for version in versions)


def test_a_result_that_arrives_after_a_newer_version_is_not_kept():
    responses, asked = QueryCache(100), []

    def ask(version):
        asked.append(version)
        if version == 1:
            responses.get("key", {"groups": 2}, lambda: ask(2))
        return Rows([{"version": version}], is_capped=False)

    assert [{"version": 1}] == responses.get("key", {"groups": 1}, lambda: ask(1)).rows
    assert [{"version": 2}] == responses.get("key", {"groups": 2}, lambda: ask(2)).rows
    assert [1, 2] == asked


def test_the_names_in_a_question_count_as_cells():
    responses, asked = QueryCache(1_000), []
    for number in (1, 2, 1):
        names = tuple(f"group {n}" for n in range(900))
        responses.get((number, names), {}, lambda number=number: asked.append(number) or Rows([], is_capped=False))
    assert [1, 2, 1] == asked
