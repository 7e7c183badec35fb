"""The first build of silver without Spark makes what the stream would make, and the stream goes on from there."""

from __future__ import annotations

import argparse
import json
import shutil

import pytest
from deltalake import DeltaTable

import jobs.build
from jobs.build import build_first, rebuild_all, start
from jobs.config.settings import Settings
from jobs.replay import Capture, bronze_of, split
from jobs.silver.first_build import begin_after
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import checkpoint_path
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import table_path
from schemas.bronze import BRONZE, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.gold import MARKS
from schemas.silver import GENERATIONS, GROUPS, REASSIGNMENT_TABLES, REBALANCES, SILVER, STALLS
from testing.recordings import CAPTURES
from tests.jobs.conftest import CLUSTER, NAME, differing, silver

BUILT = (*SILVER, *REASSIGNMENT_TABLES, MARKS)


def add_bronze(warehouse, batch, meta) -> None:
    """Write the rows of one batch as `ingest` would have."""
    found = bronze_of(batch, CLUSTER, meta)
    for table in BRONZE:
        if found.get(table.name):
            append(None, warehouse, NewRows.of(table, found[table.name]))


def bronze(warehouse, *, batches=1, capture=NAME):
    """Make a warehouse with the first batch of a recording in bronze; return the other batches."""
    recorded = Capture(CAPTURES / capture)
    create_tables(None, warehouse, BRONZE)
    first, *others = split(recorded, ("offsets", "log", "admin"), batches, None)
    add_bronze(warehouse, first, recorded.meta)
    return others, recorded.meta


def build_alone(warehouse, monkeypatch) -> None:
    """Run `regroup build --once`, which may not start a session."""
    monkeypatch.setattr(jobs.build, "session_of", lambda *_, **__: pytest.fail("a Spark session was started"))
    assert 0 == jobs.build.run(Settings(warehouse=warehouse), argparse.Namespace(once=True))


def rows(warehouse) -> dict[str, list[str]]:
    tables = {t.name: DeltaTable(table_path(warehouse, t)).to_pyarrow_table(columns=list(t.names)) for t in BUILT}
    return {name: sorted(map(repr, found.to_pylist())) for name, found in tables.items()}


@pytest.mark.parametrize("capture", [NAME, "reassignment"])
def test_it_makes_the_tables_of_the_stream(spark, tmp_path, monkeypatch, capture) -> None:
    alone, by_spark = tmp_path / "alone", tmp_path / "by-spark"
    bronze(alone, capture=capture)
    shutil.copytree(alone, by_spark)
    start(spark, Settings(warehouse=by_spark), once=True)
    build_alone(alone, monkeypatch)
    assert rows(alone) == rows(by_spark)
    assert rows(alone)[GENERATIONS.name]


def test_the_stream_goes_on_from_it(spark, warehouse, monkeypatch) -> None:
    (later,), meta = bronze(warehouse, batches=2)
    build_alone(warehouse, monkeypatch)
    add_bronze(warehouse, later, meta)
    seen = []
    affected = jobs.build.affected_frame
    monkeypatch.setattr(jobs.build, "affected_frame", lambda table, frame: seen.append(table) or affected(table, frame))
    assert begin_after(warehouse, COORDINATOR_RECORDS, checkpoint_path(warehouse, "build")) == 1
    assert not build_first(Settings(warehouse=warehouse)), "there is silver now"
    start(spark, Settings(warehouse=warehouse), once=True)
    assert seen
    found = silver(warehouse)
    rebuild_all(spark, Settings(warehouse=warehouse))
    assert differing(silver(warehouse), found) == {}


def test_without_its_note_or_with_other_tables_the_stream_begins_with_all_rows(warehouse, monkeypatch) -> None:
    bronze(warehouse)
    progress = checkpoint_path(warehouse, "build")
    assert begin_after(warehouse, COORDINATOR_RECORDS, progress) is None, "no first build yet"
    build_alone(warehouse, monkeypatch)
    note = progress / "first-build.json"
    known = json.loads(note.read_text())
    assert begin_after(warehouse, COORDINATOR_RECORDS, progress) == known[COORDINATOR_RECORDS.name][1]
    for other in (["another table", 1], [known[COORDINATOR_RECORDS.name][0], 99]):
        note.write_text(json.dumps(known | {COORDINATOR_RECORDS.name: other}))
        assert begin_after(warehouse, COORDINATOR_RECORDS, progress) is None
    note.write_text("{")
    assert begin_after(warehouse, COORDINATOR_RECORDS, progress) is None


@pytest.mark.parametrize("job", ["build", "up"])
def test_a_first_build_that_failed_is_repeated(spark, warehouse, monkeypatch, job) -> None:
    bronze(warehouse)
    settings = Settings(warehouse=warehouse)
    replaced = jobs.build.replace_rows

    def failing(session, warehouse, table, *rows):
        if table is GENERATIONS:
            raise OSError("the disk")
        return replaced(session, warehouse, table, *rows)

    with monkeypatch.context() as broken:
        broken.setattr(jobs.build, "replace_rows", failing)
        with pytest.raises(OSError, match="the disk"):
            build_first(settings, job)
    assert begin_after(warehouse, COORDINATOR_RECORDS, checkpoint_path(warehouse, job)) is None
    assert DeltaTable(table_path(warehouse, STALLS)).file_uris(), "some tables have rows"
    assert build_first(settings, job)
    assert not build_first(settings, job)
    found = silver(warehouse)
    rebuild_all(spark, settings)
    assert differing(silver(warehouse), found) == {}


def test_groups_that_only_commit_are_built_once(warehouse) -> None:
    recorded = Capture(CAPTURES / NAME)
    (batch,) = split(recorded, ("offsets",), 1, None)
    commits = bronze_of(batch, CLUSTER, recorded.meta)[OFFSET_COMMITS.name]
    create_tables(None, warehouse, BRONZE)
    append(None, warehouse, NewRows.of(OFFSET_COMMITS, commits))
    settings = Settings(warehouse=warehouse)
    assert build_first(settings, "up")
    assert rows(warehouse)[GROUPS.name]
    assert [] == rows(warehouse)[REBALANCES.name]
    assert not build_first(settings, "up")


def test_silver_whose_tables_were_deleted_is_built_again(warehouse) -> None:
    bronze(warehouse)
    settings = Settings(warehouse=warehouse)
    assert build_first(settings, "up")
    found = rows(warehouse)
    for table in BUILT:
        shutil.rmtree(table_path(warehouse, table))
    assert build_first(settings, "up")
    assert rows(warehouse) == found
