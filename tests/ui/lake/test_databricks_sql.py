"""Every query of the pages has the same rows in Databricks SQL as in DuckDB, for every reader."""

from __future__ import annotations

from importlib import import_module

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dashboards.lake import databricks_lake
from dashboards.lake.databricks_lake import DatabricksLake
from dashboards.lake.lake import TABLES, LakeError, LocalLake
from dashboards.queries.store import Store
from jobs.spark.spark import FEW_ROWS
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY
from testing import sample
from tests.ui.lake.conftest import HOSTILE, READERS, assert_same
from tests.ui.lake.databricks import Databricks, DuckEngine, SparkEngine

MODULES = (
    "queries.store",
    "queries.fleet_queries",
    "queries.group_queries",
    "queries.gold_store",
    "queries.health_store",
    "queries.move_queries",
    "queries.diagnosis_queries",
    "queries.pattern_queries",
    "queries.lag_store",
    "web.search",
)


def test_every_sql_text_of_the_pages_is_asked(asked) -> None:
    described = [vars(import_module(f"dashboards.{name}")) for name in MODULES]
    texts = {text for names in described for text in names.values() if isinstance(text, str) and "$cap" in text}
    assert texts <= set(asked)
    assert len(texts) > 35


@pytest.fixture(scope="module")
def few(spark):
    session = spark.newSession()
    for key, value in ({"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"} | FEW_ROWS).items():
        session.conf.set(key, value)
    return session


@pytest.fixture(scope="module")
def by_spark(few, folder) -> DatabricksLake:
    return Databricks(SparkEngine(few, folder)).lake()


def test_spark_answers_every_question_as_duckdb(folder, asked, by_spark) -> None:
    lake = by_spark
    assert LocalLake(folder).versions() == lake.versions()
    questions = [(sql, *question) for sql, found in asked.items() for question in found[:1]]
    answered = assert_same(folder, lake, questions, None)
    assert answered > 0.9 * len(questions)
    assert_same(folder, lake, questions[::6], READERS[0])
    # Each engine sorts unknown values in its own way.
    sorted_by = {parameters["order"]: (sql, tables, cap, parameters) for sql, tables, cap, parameters in fleets(asked)}
    assert_same(folder, lake, [sorted_by[order] for order in ("changed", "group", "p95")], None)


def fleets(asked):
    return [(sql, *question) for sql, found in asked.items() if "$order" in sql for question in found]


def test_spark_shows_a_reader_of_every_table_what_duckdb_shows(folder, few) -> None:
    lake = Databricks(SparkEngine(few, folder)).lake()
    everything = [
        (f"SELECT * FROM {t.name} LIMIT $cap", (t.name,), 500, {}) for t in TABLES if t.name in lake.versions()
    ]
    assert_same(folder, lake, everything, READERS[0])


def test_tables_of_a_schema_are_read_by_their_names(tmp_path, few, now, monkeypatch) -> None:
    monkeypatch.setattr(databricks_lake, "TABLES", [table for table in TABLES if table.name in ("groups", "storms")])
    rows = pa.table({"cluster": ["c"], "group_id": ["g"], "last_record_at": pa.array([now], pa.timestamp("ms", "UTC"))})
    write_deltalake(tmp_path / "groups", rows)
    write_deltalake(tmp_path / "storms", rows)
    newer = {VERSION_PROPERTY: str(SCHEMA_VERSION + 1)}
    DeltaTable(tmp_path / "storms").alter.set_table_properties(newer, raise_if_not_exists=False)
    lake = Databricks(SparkEngine(few, tmp_path, "two_tables")).lake()
    sql = "SELECT * FROM groups LIMIT $cap"
    assert {"groups": 0, "storms": 1} == lake.versions()
    with pytest.raises(LakeError, match="The table storms was written by a newer Regroup"):
        lake.query("SELECT * FROM storms LIMIT $cap", ["storms"], 5, {})
    assert LocalLake(tmp_path).query(sql, ["groups"], 5, {}) == lake.query(sql, ["groups"], 5, {})
    missing = Databricks(SparkEngine(few, tmp_path))
    missing.engine.location = "spark_catalog.nowhere"
    with pytest.raises(LakeError, match=r"has no schema spark_catalog\.nowhere"):
        missing.lake().versions()


@pytest.mark.parametrize("prefixes", [None, *READERS])
def test_every_question_has_the_same_answer_whoever_asks(folder, asked, prefixes) -> None:
    databricks = Databricks(DuckEngine(folder))
    questions = [(sql, *question) for sql, found in asked.items() for question in found[:3]]
    questions += [(f"SELECT * FROM {table.name} LIMIT $cap", (table.name,), 500, {}) for table in TABLES]
    assert_same(folder, databricks.lake(), questions, prefixes)
    for text, _ in databricks.asked:
        assert not any(hostile in text for hostile in HOSTILE if hostile not in ("`", "%", ":p_cap")), text


def test_ids_are_never_part_of_the_text(folder) -> None:
    databricks = Databricks(DuckEngine(folder))
    store = Store(databricks.lake())
    for text in HOSTILE:
        assert text == store.group(sample.CLUSTER, text)["group_id"]
    assert 1 == len({text for text, _ in databricks.questions})
    assert list(HOSTILE) == [given["p_group"] for _, given in databricks.questions]
