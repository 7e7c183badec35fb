"""Tables that Spark keeps elsewhere, by name or by address, have the rows of tables in a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import is_remote

import jobs.analyze
import jobs.silver.inputs
from jobs import build, doctor, ingest
from jobs.analyze import analyze
from jobs.build import rebuild_all
from jobs.captures.recording import Capture
from jobs.cli import main
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.quality import Quality
from jobs.replay import record_settings, replay, split
from jobs.silver.build_marks import rebuild_all_marks
from jobs.silver.build_reassignments import rebuild_all_reassignments
from jobs.silver.requeue import requeue
from jobs.silver.staged_rebuild import StagedRebuild
from jobs.tables.append import Once, append, append_frame, overwrite_frame
from jobs.tables.create_tables import create_tables
from jobs.tables.delta_io import read
from jobs.tables.location import bind, location, valid_location
from jobs.tables.named_tables import columns
from jobs.tables.new_rows import NewRows
from jobs.tables.paths import TableName, table_path
from jobs.tables.tables import tables_at
from pipelines.arrow_types import stored
from pipelines.decoding.record_decoding import is_offset_commit
from schemas.bronze import BRONZE, COORDINATOR_RECORDS, COVERAGE, QUARANTINE
from schemas.gold import ALERTS, GOLD, MARKS
from schemas.operations import JOB_RUNS
from schemas.records import OFFSETS_TOPIC
from schemas.silver import GENERATION_MEMBERS, GENERATIONS, REASSIGNMENT_TABLES, REBALANCES, SILVER, STALLS
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY, Table
from schemas.views import VIEWS
from testing.recordings import CAPTURES
from tests.jobs.conftest import differing
from tests.whole_rows import whole

TABLES = tuple(t for t in (*SILVER, *REASSIGNMENT_TABLES, *GOLD) if t is not ALERTS)
"""Tables whose rows do not depend on batches."""
RECORDED = Capture(CAPTURES / "streams")

Content = dict[str, list[str]]


@pytest.fixture
def schema(spark, tmp_path) -> Iterator[Path]:
    """A warehouse whose tables are in a schema of the session's catalog."""
    warehouse = tmp_path / "warehouse"
    spark.sql(f"CREATE SCHEMA elsewhere LOCATION '{tmp_path}/schema'")
    bind(warehouse, "spark_catalog.elsewhere")
    yield warehouse
    spark.sql("DROP SCHEMA elsewhere CASCADE")


@pytest.fixture
def address(tmp_path) -> Path:
    """A warehouse whose tables are below an address."""
    warehouse = tmp_path / "warehouse"
    bind(warehouse, str(tmp_path / "it's_{there}"))
    return warehouse


@pytest.fixture
def place(spark, request) -> Path:
    """Names through Spark Connect (`tests/jobs/spark/test_connect.py`), and an address otherwise."""
    return request.getfixturevalue("schema" if is_remote() else "address")


@pytest.fixture(params=["schema", "address"])
def elsewhere(request) -> Path:
    return request.getfixturevalue(request.param)


def filled(spark, warehouse: Path, *, batches: int = 1, seed: int | None = None) -> None:
    """Write the recorded cluster to the tables with the functions of `replay`."""
    settings = Settings(warehouse=warehouse)
    create_tables(spark, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    for part in split(RECORDED, ("offsets", "log", "admin"), batches, seed):
        replay(spark, settings, "kafka", RECORDED.meta, part)
    record_settings(spark, settings, "kafka", RECORDED.meta)
    analyze(spark, settings)


def content(spark, warehouse: Path, tables: tuple[Table, ...] = TABLES) -> Content:
    """Return all rows by table, independent of the order in the files."""
    return {t.name: sorted(map(repr, read(spark, warehouse, t).select(*t.names).collect())) for t in tables}


@pytest.fixture(scope="module")
def streams(spark, tmp_path_factory) -> Content:
    warehouse = tmp_path_factory.mktemp("folder") / "warehouse"
    filled(spark, warehouse)
    found = content(spark, warehouse)
    assert found["verdicts"]
    return found


def test_the_rows_are_those_of_a_folder_in_any_batches_and_after_a_rebuild(spark, place, streams, monkeypatch) -> None:
    """Through the staging table, and analyzed in parts. Each batch is ended between two tables, and repeated."""
    monkeypatch.setattr(jobs.analyze, "PART_ROWS", 30)
    monkeypatch.setattr(jobs.silver.inputs, "FEW_ROWS", 0)
    monkeypatch.setattr(build, "rebuild_affected", ended_and_repeated(monkeypatch, [REBALANCES, GENERATIONS]))
    filled(spark, place, batches=2, seed=7)
    assert [] == different(streams, content(spark, place))
    assert not list(place.glob("*/_delta_log"))
    if is_remote():
        assert all(spark.catalog.tableExists(f"spark_catalog.elsewhere.{view.name}") for view in VIEWS)
    settings = Settings(warehouse=place)
    rebuild_all(spark, settings)
    rebuild_all_reassignments(spark, place)
    rebuild_all_marks(spark, place)
    analyze(spark, settings)
    assert [] == different(streams, content(spark, place))


class EndedError(Exception):
    """Represents the end of the process."""


def ended_and_repeated(monkeypatch, before: list[Table]) -> Callable[..., None]:
    """`rebuild_affected`, which each time is first ended before it merges the next of these tables."""
    whole, merge = build.rebuild_affected, StagedRebuild.merge

    def rebuild(*given) -> None:
        ends = before.pop(0)

        def merge_or_end(self, table, *rest) -> None:
            if table is ends:
                raise EndedError
            merge(self, table, *rest)

        monkeypatch.setattr(StagedRebuild, "merge", merge_or_end)
        with pytest.raises(EndedError):
            whole(*given)
        monkeypatch.setattr(StagedRebuild, "merge", merge)
        whole(*given)

    return rebuild


def different(expected: Content, found: Content) -> list[str]:
    return [name for name in expected if expected[name] != found[name]]


def test_a_table_has_comments_clustering_and_keys_that_are_not_null(spark, elsewhere) -> None:
    create_tables(spark, elsewhere, (GENERATIONS,))
    create_tables(spark, elsewhere, (GENERATIONS,))
    name = table_path(elsewhere, GENERATIONS)
    detail = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
    assert (GENERATIONS.comment, list(GENERATIONS.cluster_by)) == (detail["description"], detail["clusteringColumns"])
    fields = {field.name: field for field in spark.table(name).schema}
    assert {c.name: c.comment for c in GENERATIONS.columns} == {n: f.metadata["comment"] for n, f in fields.items()}
    assert set(GENERATIONS.key) == {n for n, field in fields.items() if not field.nullable}


def test_an_older_table_gets_new_columns_and_a_newer_one_is_refused(spark, elsewhere, capsys) -> None:
    create_tables(spark, elsewhere, (JOB_RUNS,))
    name = TableName(table_path(elsewhere, JOB_RUNS))
    spark.sql(f"DROP TABLE {name}") if name.address is None else shutil.rmtree(name.address)
    older = replace(JOB_RUNS, columns=JOB_RUNS.columns[:-1])
    create_tables(spark, elsewhere, (older,))
    create_tables(spark, elsewhere, (JOB_RUNS,))
    assert JOB_RUNS.names == columns(name)
    assert JOB_RUNS.names[-1] in capsys.readouterr().out
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{VERSION_PROPERTY}' = '{SCHEMA_VERSION + 1}')")
    with pytest.raises(UserError, match="newer Regroup"):
        create_tables(spark, elsewhere, (JOB_RUNS,))


def test_a_repeated_write_happens_once_and_overwriting_keeps_the_clustering(spark, elsewhere) -> None:
    create_tables(spark, elsewhere, (COVERAGE,))
    path = table_path(elsewhere, COVERAGE)
    key = {"cluster": "kafka", "source": "poll", "source_partition": -1, "log_epoch": 0, "from_offset": 1}
    row = whole(key | {"records": 1}, COVERAGE)
    rows = spark.createDataFrame(stored([row], COVERAGE))
    for _ in range(2):
        append_frame(rows, elsewhere, COVERAGE, Once("stream", 0))
    assert 1 == read(spark, elsewhere, COVERAGE).count()
    append_frame(rows, elsewhere, COVERAGE, Once("stream", 1))
    assert 2 == read(spark, elsewhere, COVERAGE).count()
    overwrite_frame(lambda: rows, elsewhere, COVERAGE)
    assert 1 == read(spark, elsewhere, COVERAGE).count()
    detail = spark.sql(f"DESCRIBE DETAIL {path}").collect()[0]
    assert list(COVERAGE.cluster_by) == detail["clusteringColumns"]


def test_a_warehouse_keeps_its_location(tmp_path) -> None:
    assert location(tmp_path / "none") is None
    bind(tmp_path / "w", "main.regroup")
    bind(tmp_path / "w", "main.regroup")
    assert "main.regroup" == location(tmp_path / "w")
    with pytest.raises(UserError, match=r"belongs to the tables in main.regroup"):
        bind(tmp_path / "w", "main.other")


def test_a_folder_with_tables_is_not_bound_to_others(tmp_path) -> None:
    create_tables(None, tmp_path / "w", (JOB_RUNS,))
    with pytest.raises(UserError, match="has its tables in the folder"):
        bind(tmp_path / "w", "main.regroup")


@pytest.mark.parametrize(
    "text", ["regroup", "main.regroup", "s3a://bucket/regroup", "abfss://c@a.net/x", "/mnt/tables"]
)
def test_a_location_is_a_schema_or_an_address(text) -> None:
    assert text == valid_location(text)
    assert text == valid_location(f"{text}/")


@pytest.mark.parametrize("text", ["", "a.b.c", "a b", "`main`.x", "s3a://", "s3a://b/x`y", "tables/here", "/"])
def test_another_text_is_no_location(text) -> None:
    with pytest.raises(UserError, match="must be a schema"):
        valid_location(text)


def test_ingest_and_build_as_scheduled_jobs_give_the_tables_of_a_folder(spark, address, expected, recorded) -> None:
    settings = Settings(warehouse=address, clusters=(recorded,))
    ingest.start(spark, settings, once=True).wait()
    build.start(spark, settings, once=True)
    found = {t.name: read(spark, address, t).select(*t.names).toArrow().to_pylist() for t in SILVER}
    assert differing(expected, {name: sorted(map(repr, rows)) for name, rows in found.items()}) == {}


def test_a_quarantined_record_that_can_be_decoded_now_moves_to_its_table(spark, elsewhere) -> None:
    create_tables(spark, elsewhere, BRONZE)
    record = next(each for each in RECORDED.records() if each.key and not is_offset_commit(each.key))
    row = whole(
        {"cluster": "kafka", "source": OFFSETS_TOPIC, "log_epoch": 0, "source_partition": record.partition,
         "source_offset": record.offset, "record_at": record.timestamp_ms, "reason": "unknown",
         "raw_key": record.key, "raw_value": record.value},
        QUARANTINE,
    )  # fmt: skip
    append(spark, elsewhere, NewRows(table=QUARANTINE, few=stored([row], QUARANTINE)))
    assert 1 == requeue(spark, elsewhere)
    assert (1, 0) == tuple(read(spark, elsewhere, table).count() for table in (COORDINATOR_RECORDS, QUARANTINE))


def test_rules_find_the_same_errors_as_in_a_folder(spark, tmp_path, address) -> None:
    """Rows with wrong numbers and words, two of one key, and one without the generation that it refers to."""
    folder = tmp_path / "folder"
    key = {"cluster": "kafka", "group_id": "orders", "incarnation": 0}
    members = [
        whole(key | {"generation_id": n // 2, "member_id": f"m{n % 3}", "client_library": "none"}, GENERATION_MEMBERS)
        for n in range(6)
    ]
    rows = {
        GENERATIONS: [
            whole(key | {"generation_id": n, "member_count": n - 1, "outcome": "odd"}, GENERATIONS) for n in (0, 1, 1)
        ],
        GENERATION_MEMBERS: members,
    }
    for warehouse in (folder, address):
        create_tables(spark, warehouse, SILVER)
        for table, given in rows.items():
            append(spark, warehouse, NewRows(table=table, few=stored(given, table)))
    here, there = (
        Quality(tables=tables_at(warehouse, lambda: spark), say=print, settle_seconds=0)
        for warehouse in (folder, address)
    )
    for table in (*rows, STALLS):
        found, expected = (
            {
                row["rule"]: (row["rows_checked"], row["rows_failed"], row["passed"], sorted(row["examples"]))
                for row in quality.check(table)
            }
            for quality in (there, here)
        )
        assert expected == found
        assert table is STALLS or any(failed for _, failed, *_ in found.values())


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["up"], "`up` does not work with tables in main.regroup: run `ingest`"),
        (
            ["serve"],
            "`serve` does not work with tables in main.regroup: read them through a SQL warehouse",
        ),
        (
            ["build", "--once", "--tables", "main.other"],
            "belongs to the tables in main.regroup, but the setting tables says",
        ),
        (["build", "--tables", "a b"], "The setting tables must be a schema"),
    ],
)
def test_a_command_that_cannot_use_the_tables_says_so(tmp_path, capsys, command, sentence) -> None:
    bind(tmp_path / "w", "main.regroup")
    assert 2 == main([*command, "--warehouse", str(tmp_path / "w")])
    printed = capsys.readouterr().err
    assert sentence in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("command", [["up"], ["doctor"]])
def test_a_command_without_use_for_the_tables_binds_nothing(tmp_path, command) -> None:
    main([*command, "--warehouse", str(tmp_path / "w"), "--tables", "main.regroup"])
    assert location(tmp_path / "w") is None


def test_doctor_says_where_the_tables_are(tmp_path) -> None:
    bind(tmp_path, "main.regroup")
    finding = doctor._warehouse(tmp_path)
    assert (True, f"{tmp_path}, for tables in main.regroup, which were not read") == (finding.is_ok, finding.found)
