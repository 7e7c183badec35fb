"""New versions are checked, each once; a broken rule is reported until it is kept again."""

from __future__ import annotations

import os
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from dashboards.lake.lake import LocalLake
from dashboards.queries.health_store import HealthStore
from jobs.cli import main
from jobs.config.settings import Settings
from jobs.quality import Quality
from jobs.tables.paths import table_path
from jobs.tables.table_facts import TableVersion
from jobs.tables.tables import FolderTables
from jobs.up import check_quality
from schemas.gold import STORMS
from schemas.operations import QUALITY_RESULTS
from schemas.rules import CHECKED
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, GROUPS, STALLS
from testing.waiting import wait_until
from testing.warehouses import recorded
from tests.quality.breaking import made

pytestmark = pytest.mark.slow

RECORDED = {"churn": "eager_churn", "moves": "reassignment", "migrated": "migration", "tasks": "streams"}


def broken(rows) -> dict[tuple[str, str], int]:
    return {(row["table_name"], row["rule"]): row["rows_failed"] for row in rows if not row["passed"]}


def looked_at(rows, table) -> set[int]:
    return {row["rows_checked"] for row in rows if row["table_name"] == table.name}


def storm(name: str, **changed):
    return made(STORMS).clean[0] | {"storm_id": name} | changed


def test_what_was_recorded_keeps_every_rule(warehouse) -> None:
    recorded.store(warehouse, recorded.rows_of(RECORDED))
    found = Quality(tables=FolderTables(warehouse), say=str, settle_seconds=0).round()
    assert {} == broken(found)
    assert {table.name for table in CHECKED} == {row["table_name"] for row in found}
    assert all(row["rows_checked"] for row in found if row["table_name"] in ("generations", "stalls", "reassignments"))


def test_a_version_is_checked_once(quality) -> None:
    first = quality.round()
    assert {} == broken(first)
    assert [] == quality.round()
    assert {"groups", "generations", "generation_members", "storms"} == {row["table_name"] for row in first}
    assert not quality.is_broken()


def test_of_a_table_that_grew_only_the_new_rows_are_looked_at(quality) -> None:
    quality.round()
    FolderTables(quality.warehouse).append(STORMS, [storm("new")])
    found = quality.round()
    assert {STORMS.name} == {row["table_name"] for row in found}
    assert {1} == looked_at(found, STORMS)


def test_a_key_that_an_earlier_version_has_is_found_again(quality) -> None:
    quality.round()
    FolderTables(quality.warehouse).append(STORMS, [made(STORMS).clean[0]])
    found = quality.round()
    assert {("storms", "key is unique"): 1} == broken(found)
    assert {1} == looked_at(found, STORMS)


def test_a_broken_table_is_checked_whole_until_it_is_whole(quality, printed) -> None:
    quality.round()
    FolderTables(quality.warehouse).append(STORMS, [storm("odd", score=1.5)])
    assert {("storms", "0 <= score <= 1"): 1} == broken(quality.round())
    assert quality.is_broken()
    FolderTables(quality.warehouse).append(STORMS, [storm("fine")])
    found = quality.round()
    assert {("storms", "0 <= score <= 1"): 1} == broken(found)
    assert {4} == looked_at(found, STORMS)
    DeltaTable(table_path(quality.warehouse, STORMS)).delete("score > 1")
    assert {} == broken(quality.round())
    assert not quality.is_broken()
    assert any("storm_id = 'odd'" in line for line in printed)


def test_a_table_of_the_same_name_is_another_table(quality, tmp_path) -> None:
    quality.round()
    (quality.warehouse / STORMS.name).rename(tmp_path / "old")
    FolderTables(quality.warehouse).append(STORMS, [storm("a"), storm("b"), storm("c")])
    assert {3} == looked_at(quality.round(), STORMS)


def test_rules_that_changed_are_held_against_all_rows_again(quality) -> None:
    known = [row for row in quality.round() if row["table_name"] == STORMS.name]
    assert [] == quality.check(STORMS, known)
    other = [row | {"sentence": "It said something else."} for row in known]
    assert {2} == looked_at(quality.check(STORMS, other), STORMS)


def test_a_member_without_its_generation_is_found_wherever_it_stands(quality) -> None:
    quality.round()
    DeltaTable(table_path(quality.warehouse, GENERATIONS)).delete("group_id = 'row 0'")
    FolderTables(quality.warehouse).append(
        GENERATION_MEMBERS, [made(GENERATION_MEMBERS).clean[1] | {"member_id": "new"}]
    )
    found = broken(quality.round())
    assert {("generation_members", "generation_id is in generations")} <= set(found)


def test_what_is_only_about_to_be_written_is_not_missed(quality, monkeypatch) -> None:
    FolderTables(quality.warehouse).append(GENERATIONS, [late := made(GENERATIONS).clean[0] | {"group_id": "late"}])

    def settle(_: float) -> None:
        FolderTables(quality.warehouse).append(GROUPS, [made(GROUPS).clean[0] | {"group_id": late["group_id"]}])

    monkeypatch.setattr("jobs.quality.time.sleep", settle)
    assert {} == broken(quality.check(GENERATIONS))


def test_a_broken_rule_is_exit_code_1_also_when_nothing_is_new(sound, capsys) -> None:
    FolderTables(sound).append(STALLS, [made(STALLS).clean[0] | {"group_id": "odd", "cause": "weather"}])
    for _ in range(2):
        assert main(["quality", "--once", "--warehouse", str(sound)]) == 1
    results = capsys.readouterr().out
    assert results.count("stalls version") == 1
    assert "broken by 1: cause is known." in results


def test_a_rule_that_only_leaves_something_out_is_no_failure(sound) -> None:
    DeltaTable(table_path(sound, GROUPS)).delete("group_id = 'row 0'")
    quality = replace(Quality(tables=FolderTables(sound), say=str), settle_seconds=0)
    assert {"warning"} == {row["severity"] for row in quality.round() if not row["passed"]}
    assert not quality.is_broken()


def test_a_warehouse_without_tables_is_named(tmp_path, capsys) -> None:
    assert main(["quality", "--once", "--warehouse", str(tmp_path / "absent")]) == 2
    printed = capsys.readouterr().err
    assert f"The warehouse {tmp_path / 'absent'} has no table of silver or gold yet" in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "absent").exists()


def test_a_check_asks_no_network_and_leaves_no_file_where_it_runs(quality, tmp_path, monkeypatch) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    asked = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: asked.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: asked.append(address))
    quality.docs(tmp_path / "docs")
    quality.round()
    assert ([], []) == (asked, list(here.iterdir()))


def test_data_docs_show_hostile_text_as_text_and_may_run_and_fetch_nothing(quality, tmp_path) -> None:
    hostile = "<script>alert(1)</script>"
    FolderTables(quality.warehouse).append(STORMS, [storm(hostile, score=2.0, suspected_cause=hostile)])
    first = quality.docs(tmp_path / "docs")
    pages = {page: page.read_text() for page in (tmp_path / "docs").rglob("*.html")}
    assert first in pages
    assert any("&lt;script&gt;alert(1)" in text for text in pages.values())
    for text in pages.values():
        assert hostile not in text
        assert '<head><meta http-equiv="Content-Security-Policy" content="default-src \'none\'' in text


def test_data_docs_that_cannot_be_written_are_one_sentence(sound, tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    place = str(tmp_path / "file" / "docs")
    assert main(["quality", "--once", "--warehouse", str(sound), "--data-docs", place]) == 2
    assert "name another with --data-docs" in capsys.readouterr().err


def test_results_name_the_version_that_was_checked(quality) -> None:
    quality.round()
    rows = DeltaTable(table_path(quality.warehouse, QUALITY_RESULTS)).to_pyarrow_table().to_pylist()
    for table in quality.there():
        version = TableVersion.of(quality.warehouse, table)
        results = {(row["table_id"], row["version"]) for row in rows if row["table_name"] == table.name}
        assert {(version.table_id, version.version)} == results


def test_an_example_is_cut_and_few_are_kept(quality) -> None:
    FolderTables(quality.warehouse).append(STORMS, [storm(f"{n}{'x' * 900}", score=2.0) for n in range(40)])
    rows = [row for row in quality.check(STORMS) if not row["passed"]]
    assert [40] == [row["rows_failed"] for row in rows]
    (examples,) = [row["examples"] for row in rows]
    assert 5 == len(examples)
    assert {300} == {len(example) for example in examples}


@pytest.mark.parametrize("hostile", ["'; DROP TABLE storms; --", "\x00\u202e", '"', "\N{FACE WITH TEARS OF JOY}" * 50])
def test_hostile_ids_are_values_and_nothing_else(quality, hostile) -> None:
    FolderTables(quality.warehouse).append(STORMS, [storm(hostile), storm(hostile)])
    assert {("storms", "key is unique"): 2} == broken(quality.check(STORMS))


def test_up_checks_now_and_then_and_leaves_no_process_when_it_stops(sound: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    stopped = threading.Event()
    check_quality(Settings(warehouse=sound, quality_seconds=0.1), stopped)
    wait_until(lambda: HealthStore(LocalLake(sound, fresh_seconds=0)).results())
    stopped.set()
    (checking,) = [each for each in threading.enumerate() if each.name == "quality"]
    checking.join(120)
    assert not checking.is_alive()
