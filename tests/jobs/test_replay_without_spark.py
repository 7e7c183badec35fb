"""`replay` starts no Spark session, and its tables are those of `build` and `analyze` with Spark, column by column."""

from __future__ import annotations

import shutil

import deltalake
import pytest

import jobs.build
import jobs.replay
from jobs.analyze import analyze
from jobs.build import rebuild_all
from jobs.cli import main
from jobs.config.settings import Settings
from jobs.silver.build_marks import rebuild_all_marks
from jobs.silver.build_reassignments import rebuild_all_reassignments
from jobs.tables.create_tables import needs_spark
from schemas.bronze import BRONZE
from schemas.gold import CLUSTER_PATTERNS, GROUP_TABLES, MARKS, PATTERNS, SETTING_CHANGES, STORMS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from testing.recordings import CAPTURES
from testing.warehouses.volume import refuse_in

BUILT = (*SILVER, *REASSIGNMENT_TABLES, *GROUP_TABLES, CLUSTER_PATTERNS, STORMS, MARKS)
FILLED = {
    "eager_churn": tuple(table for table in GROUP_TABLES if table not in (PATTERNS, SETTING_CHANGES)),
    "settings": (SETTING_CHANGES,),
    "reassignment": REASSIGNMENT_TABLES,
    "storms": (STORMS,),
}
"""The tables that a recording is certain to fill."""


def refused(*_args, **_named) -> None:
    pytest.fail("a Spark session was started")


def replay_alone(warehouse, name, monkeypatch, *options) -> None:
    monkeypatch.setattr(jobs.replay, "session_of", refused)
    assert 0 == main(["replay", str(CAPTURES / name), "--warehouse", str(warehouse), *options])


def described(warehouse, tables) -> dict[str, tuple]:
    """Return by table: its columns with comments, its properties, the required reader features, and its rows."""
    out = {}
    for table in tables:
        stored = deltalake.DeltaTable(str(warehouse / table.name))
        rows = sorted(map(repr, stored.to_pyarrow_table(columns=list(table.names)).to_pylist()))
        out[table.name] = stored.schema().to_json(), stored.metadata().configuration, stored.protocol(), rows
    return out


@pytest.mark.parametrize("name", FILLED)
def test_its_tables_are_those_of_build_and_analyze_with_spark(spark, tmp_path, monkeypatch, name) -> None:
    alone, by_spark = tmp_path / "alone", tmp_path / "by-spark"
    replay_alone(alone, name, monkeypatch)
    for table in BRONZE:
        shutil.copytree(alone / table.name, by_spark / table.name)
    settings = Settings(warehouse=by_spark)
    jobs.build.start(spark, settings, once=True)
    analyze(spark, settings)
    expected, found = described(by_spark, BUILT), described(alone, BUILT)
    assert [table for table in expected if expected[table] != found[table]] == []
    assert all(found[table.name][-1] for table in FILLED[name])


def test_spark_jobs_go_on_with_its_warehouse(spark, tmp_path, monkeypatch) -> None:
    replay_alone(tmp_path, "eager_churn", monkeypatch, "--batches", "3", "--seed", "4")
    before, settings = described(tmp_path, BUILT), Settings(warehouse=tmp_path)
    assert analyze(spark, settings) == 0, "what replay analysed is remembered"
    rebuild_all(spark, settings)
    rebuild_all_reassignments(spark, tmp_path)
    rebuild_all_marks(spark, tmp_path)
    analyze(spark, settings, again=True)
    assert described(tmp_path, BUILT) == before


def test_rows_beyond_those_of_one_rebuild_are_made_in_parts_and_files(tmp_path, monkeypatch) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    replay_alone(whole, "eager_churn", monkeypatch)
    monkeypatch.setattr("jobs.silver.inputs.FEW_ROWS", 0)
    monkeypatch.setattr("jobs.silver.silver_tasks.MOST", 100)
    monkeypatch.setattr("jobs.silver.silver_tasks.LEAST", 1)
    monkeypatch.setattr("jobs.tables.output.Output._bytes", lambda _: 1 << 40)
    monkeypatch.setattr("jobs.analyze.PART_ROWS", 1)
    replay_alone(parts, "eager_churn", monkeypatch)
    assert described(parts, BUILT) == described(whole, BUILT)
    assert len(list((parts / "generations").glob("*.parquet"))) > len(list((whole / "generations").glob("*.parquet")))


def test_on_a_volume_and_for_clustered_tables_it_needs_a_session(tmp_path, monkeypatch) -> None:
    assert not needs_spark(tmp_path, BUILT)
    refuse_in(monkeypatch)
    assert needs_spark(tmp_path / "volume", BUILT)
