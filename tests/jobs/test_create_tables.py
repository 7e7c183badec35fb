"""Tables agree with their definitions, whoever creates them, also after a process was killed while it created one."""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import jobs
from jobs.build import rebuild_all
from jobs.config.settings import Settings
from jobs.silver.build_reassignments import rebuild_all_reassignments
from jobs.tables.append import overwrite_frame
from jobs.tables.create_tables import LOCAL_PROPERTIES, UNFINISHED_S, create, create_tables
from jobs.tables.delta_io import read
from jobs.tables.paths import table_path
from jobs.tables.replace import CHANGE, _whole
from pipelines.arrow_types import schema_of
from schemas.bronze import BRONZE, COVERAGE
from schemas.gold import ALERTS, GOLD
from schemas.operations import JOB_RUNS
from schemas.silver import GROUPS, REASSIGNMENT_TABLES, SILVER
from testing.warehouses.volume import refuse_in


def begun(path: str, *, seconds_ago: float) -> Path:
    """Leave a table as Delta does before its first commit is renamed into place."""
    log = Path(path) / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    half = log / ".00000000000000000000.json.3f1c.tmp"
    half.write_text("{")
    at = time.time() - seconds_ago
    for each in (half, log / "_staged_commits", log):
        os.utime(each, (at, at))
    return log


@pytest.fixture
def on_a_volume(monkeypatch) -> None:
    """A folder in which Spark creates tables."""
    refuse_in(monkeypatch)


@pytest.mark.parametrize("table", [*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD], ids=lambda table: table.name)
def test_a_table_is_as_defined_for_spark_and_its_writes(spark, warehouse, table) -> None:
    create_tables(spark, warehouse, [table])
    made, wanted = read(spark, warehouse, table).schema, spark.createDataFrame([], table.ddl).schema
    assert wanted.simpleString() == made.simpleString()
    stored = DeltaTable(table_path(warehouse, table)).schema()
    assert set(table.key) == {field.name for field in stored.fields if not field.nullable}
    assert [c.comment for c in table.columns] == [field.metadata["comment"] for field in made]


@pytest.mark.parametrize("table", [COVERAGE, ALERTS], ids=lambda table: table.name)
def test_on_a_volume_a_table_differs_in_its_clustering_alone(spark, warehouse, tmp_path, on_a_volume, table) -> None:
    create_tables(spark, tmp_path / "other", [table])
    create(warehouse, table)
    theirs, ours = (DeltaTable(table_path(folder, table)) for folder in (tmp_path / "other", warehouse))
    assert theirs.schema() == ours.schema()
    assert theirs.metadata().description == ours.metadata().description
    described, also = theirs.metadata().configuration, ours.metadata().configuration
    assert {**described, **LOCAL_PROPERTIES} == also
    assert ("clustering" in (theirs.protocol().writer_features or ())) == bool(table.cluster_by)
    assert not ours.protocol().writer_features


def test_a_table_that_was_begun_and_left_is_made(spark, warehouse, on_a_volume) -> None:
    log = begun(table_path(warehouse, COVERAGE), seconds_ago=UNFINISHED_S)
    create_tables(spark, warehouse, [COVERAGE])
    assert 0 == read(spark, warehouse, COVERAGE).count()
    assert not list(log.glob("*.tmp"))


def test_a_table_that_somebody_makes_just_now_is_waited_for(spark, warehouse, tmp_path, on_a_volume) -> None:
    create_tables(spark, tmp_path / "other", [COVERAGE])
    theirs = Path(table_path(tmp_path / "other", COVERAGE)) / "_delta_log" / f"{0:020}.json"
    log = begun(table_path(warehouse, COVERAGE), seconds_ago=0)
    making = threading.Timer(1, theirs.rename, [log / theirs.name])
    making.start()
    create_tables(spark, warehouse, [COVERAGE])
    assert 0 == read(spark, warehouse, COVERAGE).count()
    assert list(log.glob("*.tmp")), "nothing of theirs was deleted"


def test_a_small_table_that_was_begun_and_left_is_made(warehouse) -> None:
    begun(table_path(warehouse, JOB_RUNS), seconds_ago=0)
    create(warehouse, JOB_RUNS)
    assert (Path(table_path(warehouse, JOB_RUNS)) / "_delta_log" / f"{0:020}.json").is_file()


def test_of_many_who_make_a_table_at_the_same_instant_none_fails(warehouse) -> None:
    together = threading.Barrier(8)

    def make(_: int) -> None:
        together.wait()
        create(warehouse, JOB_RUNS)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(8)))
    assert 0 == DeltaTable(table_path(warehouse, JOB_RUNS)).version()


def clustered_by(spark, warehouse, table) -> list[str]:
    return spark.sql(f"DESCRIBE DETAIL delta.`{table_path(warehouse, table)}`").first()["clusteringColumns"]


ALL = (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, *GOLD)
CLUSTERED = [table for table in ALL if table.cluster_by]


@pytest.fixture(scope="module")
def made_by_spark(spark, tmp_path_factory) -> Path:
    """All tables as Databricks creates them, which takes half a minute; each test has its own copy."""
    folder = tmp_path_factory.mktemp("clustered") / "warehouse"
    with pytest.MonkeyPatch.context() as patched:
        refuse_in(patched)
        create_tables(spark, folder, ALL)
    return folder


@pytest.fixture
def clustered(made_by_spark, warehouse, on_a_volume) -> Path:
    shutil.copytree(made_by_spark, warehouse)
    return warehouse


def test_overwriting_keeps_the_clustering_of_every_table(spark, clustered) -> None:
    for table in CLUSTERED:
        none = spark.createDataFrame([], read(spark, clustered, table).schema)
        overwrite_frame(lambda none=none: none, clustered, table)
        assert list(table.cluster_by) == clustered_by(spark, clustered, table), table.name


def test_rebuilding_and_replacing_keep_the_clustering(spark, clustered) -> None:
    rebuild_all(spark, Settings(warehouse=clustered))
    rebuild_all_reassignments(spark, clustered)
    changes = schema_of(GROUPS).empty_table().append_column(CHANGE, pa.array([], pa.string()))
    path = table_path(clustered, GROUPS)
    overwrite_frame(lambda: _whole(spark, changes, path, GROUPS), clustered, GROUPS)
    for table in (*SILVER, *REASSIGNMENT_TABLES):
        assert list(table.cluster_by) == clustered_by(spark, clustered, table), table.name


def test_no_job_overwrites_a_table_in_another_way() -> None:
    folder = Path(jobs.__file__).parent
    found = {file.name: file.read_text().count('.mode("overwrite")') for file in folder.rglob("*.py")}
    # The second one replaces the staging table, which has no clustering.
    assert {"append.py": 2} == {name: count for name, count in found.items() if count}
