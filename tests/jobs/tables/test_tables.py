"""What `Tables` promises, by the engine that writes them: deltalake, or Spark in a folder without hard links."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable

from jobs.config.errors import UserError
from jobs.tables.create_tables import PROPERTIES
from jobs.tables.disk.hard_links import has_hard_links
from jobs.tables.tables import FolderTables, SparkTables, Tables, tables_at
from schemas.gold import ALERTS
from schemas.operations import JOB_RUNS
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY, Table
from testing.warehouses.volume import refuse_in
from tests.whole_rows import whole


@pytest.fixture(params=["folder", "folder without hard links"])
def tables(spark, warehouse, monkeypatch, request) -> Tables:
    warehouse = warehouse / "it's a {folder}"
    if request.param == "folder":
        return tables_at(warehouse, lambda: pytest.fail("a session was started"))
    refuse_in(monkeypatch)
    return tables_at(warehouse, lambda: spark)


def rows(tables: Tables, table: Table, *columns: str) -> list[tuple]:
    found = DeltaTable(tables.warehouse / table.name).to_pyarrow_table(columns=list(columns)).to_pylist()
    return sorted(tuple(row.values()) for row in found)


def run(number: int) -> dict[str, object]:
    return whole({"job": "build", "run_id": f"run {number}", "told_at": number, "error": "it's `odd`"}, JOB_RUNS)


def alert(subject: str, **more: object) -> dict[str, object]:
    key = {"cluster": "kafka", "alert_name": "Storm", "subject": subject, "started_at": 1}
    return whole(key | more, ALERTS)


def test_the_folder_decides_who_writes(spark, tmp_path, monkeypatch) -> None:
    assert isinstance(tables_at(tmp_path / "one", lambda: spark), FolderTables)
    refuse_in(monkeypatch)
    assert isinstance(tables_at(tmp_path / "other", lambda: spark), SparkTables)


def test_the_trial_of_hard_links_leaves_nothing_behind(tmp_path, monkeypatch) -> None:
    assert has_hard_links(tmp_path / "not" / "yet")
    refuse_in(monkeypatch)
    assert not has_hard_links(tmp_path)
    assert [] == list(tmp_path.iterdir())


def test_rows_are_appended_to_a_table_that_the_first_append_creates(tables) -> None:
    tables.append(JOB_RUNS, [run(1), run(2)])
    tables.append(JOB_RUNS, [run(3)])
    assert [(f"run {n}", "it's `odd`") for n in (1, 2, 3)] == rows(tables, JOB_RUNS, "run_id", "error")


def test_a_merge_replaces_rows_of_the_same_key_and_adds_others(tables) -> None:
    tables.ensure(ALERTS)
    tables.ensure(ALERTS)
    tables.merge(ALERTS, [alert("one", last_error="down"), alert("two")])
    tables.merge(ALERTS, [alert("one", sent_to=["am"]), alert("three")])
    expected = [("one", ["am"], None), ("three", None, None), ("two", None, None)]
    assert expected == rows(tables, ALERTS, "subject", "sent_to", "last_error")


def test_several_threads_append_at_the_same_time(tables) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: tables.append(JOB_RUNS, [run(n)]), range(8)))
    assert sorted(f"run {n}" for n in range(8)) == [name for (name,) in rows(tables, JOB_RUNS, "run_id")]


def test_a_table_of_a_newer_version_is_refused(tables) -> None:
    tables.ensure(JOB_RUNS)
    stored = DeltaTable(tables.warehouse / JOB_RUNS.name)
    assert PROPERTIES.items() <= stored.metadata().configuration.items()
    stored.alter.set_table_properties({VERSION_PROPERTY: str(SCHEMA_VERSION + 1)}, raise_if_not_exists=False)
    with pytest.raises(UserError, match="update Regroup"):
        tables.append(JOB_RUNS, [run(1)])


def test_a_folder_that_cannot_be_written_is_left_to_the_write_that_fails(tmp_path, monkeypatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refused)
    assert has_hard_links(Path(tmp_path, "new"))
