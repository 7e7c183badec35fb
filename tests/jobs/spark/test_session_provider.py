"""Which Spark session a process uses, and what works with a session that has no context of its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from jobs.config.settings import Settings
from jobs.ingest import most_tasks
from jobs.spark import session_provider
from jobs.spark import spark as sessions
from jobs.spark.session_provider import Provider, provider

ROOT = Path(__file__).parents[3]
NAMES = ("DATABRICKS_RUNTIME_VERSION", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT")


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"SPARK_HOME": "/opt/spark", "MASTER": "yarn"}, None),
        ({"PYSPARK_GATEWAY_PORT": "40001"}, Provider.SUBMIT),
        ({"SPARK_REMOTE": "sc://spark:15002"}, Provider.CONNECT),
        ({"SPARK_CONNECT_MODE_ENABLED": "1"}, Provider.CONNECT),
        ({"SPARK_REMOTE": "sc://spark:15002", "PYSPARK_GATEWAY_PORT": "40001"}, Provider.CONNECT),
        ({"DATABRICKS_RUNTIME_VERSION": "18.0", "SPARK_CONNECT_MODE_ENABLED": "1"}, Provider.DATABRICKS),
    ],
)
def test_the_environment_says_what_provides_the_session(monkeypatch, given, expected) -> None:
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert expected is provider()


@pytest.mark.parametrize(
    ("master", "expected"), [("local[2]", None), ("spark://spark:7077", Provider.CONTEXT), ("yarn", Provider.CONTEXT)]
)
def test_a_context_on_a_cluster_is_used_and_a_local_one_is_our_own(monkeypatch, master, expected) -> None:
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", SimpleNamespace(master=master))
    assert expected is provider()


def test_as_many_tasks_read_a_topic_as_the_session_has_threads_or_the_setting_allows(monkeypatch) -> None:
    settings = Settings(cores=3, ingest_tasks=50)
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    assert 3 == most_tasks(settings)
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "40001")
    assert 50 == most_tasks(settings)


def test_without_pyspark_nothing_is_imported_to_find_out(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark")
    assert provider() is None
    assert "pyspark" not in sys.modules
    assert "pyspark" not in vars(session_provider)


def test_a_provided_session_gets_the_options_that_rows_depend_on_and_no_master(spark, monkeypatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "40001")
    monkeypatch.setattr(SparkSession.Builder, "master", lambda *_: pytest.fail("a master was chosen"))
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.session.timeZone", "Europe/Zurich")
    theirs.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: theirs)
    assert theirs is sessions.session("test", cores=64)
    assert theirs.conf.get("spark.sql.session.timeZone") == "UTC"
    assert theirs.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert theirs.conf.get("spark.sql.shuffle.partitions") == "2"


def test_with_spark_connect_a_session_is_asked_only_for_what_it_has(monkeypatch) -> None:
    connected = SimpleNamespace(conf={"spark.sql.shuffle.partitions": "7"})
    monkeypatch.setattr(sessions, "is_remote", lambda: True)
    assert 7 == sessions.tasks_at_once(connected)


def test_a_frame_is_kept_for_several_reads(spark) -> None:
    frame = spark.range(3)
    with sessions.persisted(frame) as kept:
        assert kept.is_cached
    assert not frame.is_cached


def test_where_no_rows_can_be_kept_the_frame_is_evaluated_at_each_read(spark, monkeypatch) -> None:
    frame = spark.range(3)

    def refused(self):
        raise PySparkException("[NOT_SUPPORTED_WITH_SERVERLESS] PERSIST TABLE is not supported on serverless compute.")

    monkeypatch.setattr(type(frame), "persist", refused)
    monkeypatch.setattr(type(frame), "unpersist", lambda _: pytest.fail("nothing was kept"))
    with sessions.persisted(frame) as given:
        assert 3 == given.count()


def test_no_other_module_asks_a_session_for_what_spark_connect_lacks() -> None:
    found = re.compile(r"\.(sparkContext|newSession|_jvm|_jsc|_jdf|_sc|rdd)\b")
    jobs = ROOT / "jobs"
    using = {str(path.relative_to(jobs)) for path in jobs.rglob("*.py") if found.search(path.read_text("utf-8"))}
    # The archive and `_silence` of `up` are only for a local session.
    assert using == {"spark/spark.py", "spark/class_archive.py", "up.py"}
