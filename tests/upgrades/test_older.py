"""This Regroup continues a warehouse of an earlier one as if it were its own, and leaves one of a newer one alone."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from dashboards.app import page
from dashboards.lake.lake import LakeError, LocalLake
from dashboards.queries.store import Store
from jobs import cli
from jobs.analyze import analyze
from jobs.build import INPUTS, rebuild_all, start
from jobs.config.settings import Settings
from jobs.doctor import _warehouse
from jobs.replay import Capture, bronze_of, split
from jobs.spark.checkpoint import start_over_unless
from jobs.tables.create_tables import create_tables, refuse_newer_tables
from jobs.tables.delta_io import checkpoint_path
from jobs.tables.paths import table_path
from jobs.tables.tables import FolderTables
from pipelines.arrow_types import row_type
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, OFFSET_COMMITS
from schemas.operations import JOB_RUNS
from schemas.silver import GROUPS
from schemas.tables import schema_version
from testing.recordings import CAPTURES
from tests.jobs.conftest import CLUSTER, differing, silver
from tests.ui.reading import words
from tests.whole_rows import whole

GROUP = "payments-eager"
NOW = 1_795_312_800_000


def test_build_goes_on_and_gives_what_a_fresh_build_of_the_same_bronze_gives(
    spark, older, tmp_path, monkeypatch, capsys
) -> None:
    settings = Settings(warehouse=older)
    create_tables(spark, older, BRONZE)
    assert "offset_commits comes from an earlier version of Regroup and gets the new columns" in capsys.readouterr().out
    capture = Capture(CAPTURES / "eager_churn")
    rows = bronze_of(split(capture, ("offsets", "log", "admin"), 4, None)[1], CLUSTER, capture.meta)
    for table in BRONZE:
        if rows.get(table.name):
            new = pa.Table.from_struct_array(pa.array(rows[table.name], row_type(table)))
            spark.createDataFrame(new).write.format("delta").mode("append").save(table_path(older, table))

    start(spark, settings, once=True)
    assert "bronze is read from its beginning" in capsys.readouterr().out
    fresh = Settings(warehouse=tmp_path / "fresh")
    for table in BRONZE:
        shutil.copytree(table_path(older, table), table_path(fresh.warehouse, table))
    rebuild_all(spark, fresh)
    assert differing(silver(fresh.warehouse), silver(older)) == {}
    assert analyze(spark, settings) > 0

    monkeypatch.setattr("jobs.tables.create_tables.SCHEMA_VERSION", 2)
    create_tables(spark, older, (GROUPS,))
    assert schema_version(DeltaTable(table_path(older, GROUPS)).metadata().configuration) == 2


@pytest.mark.parametrize("path", ["/", "/group", "/rebalance", "/storms", "/advice", "/reassignments", "/health"])
def test_pages_show_an_older_warehouse_as_it_is(older, path) -> None:
    group = DeltaTable(table_path(older, GROUPS)).to_pyarrow_table()["group_id"][0].as_py()
    made, _, _ = page(Store(LocalLake(older)), path, f"?group={group}&generation=1&from=all", None, NOW)
    assert "could not be built" not in words(made)
    assert "earlier Regroup" not in words(made)


def test_a_page_that_asks_for_a_column_that_is_not_there_yet_says_what_to_do(older) -> None:
    lake = LocalLake(older)
    with pytest.raises(LakeError, match="offset_commits is of an earlier Regroup: its job adds the missing"):
        lake.query("SELECT topic_id FROM offset_commits LIMIT $cap", (OFFSET_COMMITS.name,), 1, {})
    with pytest.raises(Exception, match="nonsense") as mistake:
        lake.query("SELECT nonsense FROM groups LIMIT $cap", (GROUPS.name,), 1, {})
    assert not isinstance(mistake.value, LakeError)


NEEDED = {"replay": ["capture"], "erase": ["--cluster", "kafka", "--group", "g"]}


@pytest.fixture
def newer(older) -> Path:
    log = older / GROUPS.name / "_delta_log" / f"{0:020}.json"
    known = '"regroup.schema_version":"1"'
    text = log.read_text()
    assert known in text
    log.write_text(text.replace(known, '"regroup.schema_version":"2"'))
    return older


@pytest.mark.parametrize("command", [*cli.RECORDED, "up"])
def test_every_job_leaves_a_newer_warehouse_alone(newer, capsys, command) -> None:
    before = sorted(newer.rglob("*"))
    assert cli.main([command, *NEEDED.get(command, []), "--warehouse", str(newer)]) == 2
    assert "groups has schema version 2, written by a newer Regroup" in capsys.readouterr().err
    assert before == sorted(newer.rglob("*"))


def test_a_table_that_is_only_begun_keeps_no_job_from_starting(older) -> None:
    (older / "begun" / "_delta_log").mkdir(parents=True)
    (older / GROUPS.name / "_delta_log" / f"{1:020}.json").write_text("")
    refuse_newer_tables(older)


def test_the_pages_and_doctor_name_a_newer_warehouse(newer) -> None:
    made, _, _ = page(Store(LocalLake(newer)), "/", "", None, NOW)
    assert "The table groups was written by a newer Regroup than these pages" in words(made)
    assert not _warehouse(newer).is_ok
    assert "update Regroup" in _warehouse(newer).advice


def test_a_small_table_of_an_earlier_version_gains_columns_and_version(warehouse, monkeypatch) -> None:
    earlier = replace(JOB_RUNS, columns=JOB_RUNS.columns[:-2])
    row = {"job": "build", "run_id": "1", "told_at": 1, "started_at": 1}
    FolderTables(warehouse).append(earlier, [whole(row, earlier)])
    monkeypatch.setattr("jobs.tables.create_tables.SCHEMA_VERSION", 2)
    FolderTables(warehouse).append(JOB_RUNS, [whole(row | {"run_id": "2", "pid": 7}, JOB_RUNS)])
    found = DeltaTable(table_path(warehouse, JOB_RUNS))
    assert sorted(found.to_pyarrow_table()["pid"].to_pylist(), key=str) == [7, None]
    assert schema_version(found.metadata().configuration) == 2


def test_progress_over_as_many_tables_as_before_is_kept(older) -> None:
    progress = checkpoint_path(older, "build")
    start_over_unless(progress, older, INPUTS)
    assert progress.is_dir()
    start_over_unless(progress, older, (*INPUTS, ADMIN_OBSERVATIONS))
    assert not progress.exists()
    start_over_unless(progress, older, INPUTS)


def test_progress_from_before_a_tables_log_begins_is_forgotten(older) -> None:
    progress = checkpoint_path(older, "build")
    for stood in (progress / "offsets").iterdir():
        stood.write_text(re.sub(r'"reservoirVersion":\d+', '"reservoirVersion":0', stood.read_text()))
    start_over_unless(progress, older, INPUTS)
    assert progress.is_dir(), "the log has it"
    first = table_path(older, next(iter(INPUTS)))
    DeltaTable(first).create_checkpoint()
    Path(first, "_delta_log", f"{0:020}.json").unlink()
    start_over_unless(progress, older, INPUTS)
    assert not progress.exists()
