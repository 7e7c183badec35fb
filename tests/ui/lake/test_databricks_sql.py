"""Every question that the pages ask is answered by Databricks SQL as by DuckDB, row by row, whoever asks."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from dashboards.app import page
from dashboards.lake import databricks_lake
from dashboards.lake.databricks_lake import DatabricksLake
from dashboards.lake.lake import TABLES, LakeError, LocalLake, Rows
from dashboards.pages import fleet
from dashboards.queries.store import ORDERS, Store
from dashboards.urlstate import PATHS, Window, parse
from dashboards.web.search import Search
from jobs.spark.spark import FEW_ROWS
from pipelines.arrow_types import stored
from schemas.gold import ADVICE, CLUSTER_PATTERNS, DIAGNOSES, PATTERNS
from schemas.tables import SCHEMA_VERSION, VERSION_PROPERTY
from testing import sample
from tests.ui.lake.databricks import Databricks, DuckEngine, SparkEngine
from tests.whole_rows import of_table, whole

HOSTILE = ("'; DROP TABLE groups; --", '" OR ""="', ":p_cap", "$cap", "a\nb", "`", "ünï\\", '{}"]', "%", "x" * 300)
READERS = (("billing-", "ship"), ("'", ":p_cap", "$", "ünï\\"), ("nobody",), ())
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


class Recording:
    """Asks a lake, and keeps what it was asked: by SQL text, questions that had an answer first."""

    def __init__(self, lake: LocalLake) -> None:
        self.versions, self.changed_at, self._lake = lake.versions, lake.changed_at, lake
        self.asked: dict[str, list[tuple[Any, int, dict[str, Any]]]] = {}

    def query(self, sql, tables, cap, parameters, prefixes=None) -> Rows:
        found = self._lake.query(sql, tables, cap, parameters, prefixes)
        question = (tuple(tables), cap, dict(parameters))
        asked = self.asked.setdefault(sql, [])
        if question not in asked:
            asked.insert(0 if found.rows else len(asked), question)
        return found


def gold(table, group: str, now: int) -> dict[str, Any]:
    """A row whose columns are all set."""
    by_type = {"INT": 1, "BIGINT": 2, "DOUBLE": 0.5, "STRING": group, "TIMESTAMP": now, "BOOLEAN": True}
    row = {c.name: by_type[c.type] for c in table.columns if c.type in by_type}
    more = {
        "cluster": sample.CLUSTER, "group_id": group, "action": "static_membership", "status": "suggested", "cause": "deploy",
        "evidence": "observed", "instances": [group], "settings": {"java": group}, "preconditions": [f"met: {group}"],
        "pattern": "rejoin_loop", "ended_at": None, "sources": ["topic"],
    }  # fmt: skip
    return row | more


@pytest.fixture(scope="module")
def folder(tmp_path_factory, now) -> Path:
    """A bit of everything."""
    folder = tmp_path_factory.mktemp("asked")
    rows = sample.merge({}, sample.everyday(now), sample.hostile(now, HOSTILE))
    printed = {"cluster": sample.CLUSTER, "observed_at": now - 60_000, "source": "poll", "subject": "orders"}
    bodies = {
        "end_offsets": {"topic": "orders", "ends": {"0": 7}},
        "error": {"call": "DescribeGroups", "text": "no", "subject": HOSTILE[0]},
        "group_list": {},
    }
    rows["admin_observations"] = [printed | {"kind": kind, "body": json.dumps(body)} for kind, body in bodies.items()]
    rows["generations"][0] |= {"not_costed": "too_large", "resources_not_costed": 250_000}
    limit = {"limit_name": "max_groups", "cluster": sample.CLUSTER, "reached_at": now, "allowed": 10, "groups": 3}
    rows["limits_reached"] = [limit | {"example": HOSTILE[0]}]
    (read,) = rows["coverage"]
    lost = {
        "from_offset": 2000,
        "to_offset": 2100,
        "is_gap": True,
        "gap_reason": "deleted",
        "from_at": None,
        "to_at": None,
    }
    rows["coverage"].append(read | lost)
    broken = {"cluster": sample.CLUSTER, "source": "log", "log_epoch": 0, "source_partition": 1, "record_at": now}
    rows["quarantine"] = [
        broken | {"source_offset": n, "reason": "bad_value", "detail": text, "raw_key": text.encode()}
        for n, text in enumerate(HOSTILE)
    ]
    unread = {"source": "broker-1.log", "source_partition": -1, "source_offset": 9, "reason": "unknown_layout"}
    rows["quarantine"].append(broken | unread | {"detail": HOSTILE[0], "lines": 7})
    moved = rows["reassignments"][0]
    rows["reassignment_samples"] = [
        {"cluster": moved["cluster"], "topic": moved["topic"], "partition": moved["partition"], "progress": 0.5,
         "observed_at": moved["started_at"] + 1000, "bytes_done": 5, "bytes_total": 10, "bytes_per_second": 2.5}
    ]  # fmt: skip
    sample.write(folder, rows)
    for table in (ADVICE, DIAGNOSES, PATTERNS):
        described = [gold(table, group, now - 1000) for group in (*HOSTILE, "billing-worker", "shipping-planner")]
        write_deltalake(
            f"{folder}/{table.name}", stored([whole(of_table(row, table), table) for row in described], table)
        )
    hit = {"pattern": "offsets_partition_down", "ended_at": None, "sources": ["log"], "groups": len(HOSTILE)}
    down = gold(CLUSTER_PATTERNS, HOSTILE[0], now - 1000) | hit | {"group_ids": list(HOSTILE)}
    shape = CLUSTER_PATTERNS
    write_deltalake(f"{folder}/{shape.name}", stored([whole(of_table(down, shape), shape)], shape))
    return folder


@pytest.fixture(scope="module")
def asked(folder, now) -> dict[str, list[tuple[Any, int, dict[str, Any]]]]:
    """What the pages ask in all of their states."""
    recording = Recording(LocalLake(folder))
    store, of = Store(recording), f"cluster={sample.CLUSTER}&group=billing-worker&incarnation=0&generation=5"
    states = ["from=all", "from=now-1h&q=a", "storm=together", "from=1&to=2"]
    states += [f"from={since}&{of}" for since in ("all", "now-1h", "now-20m")]
    states += [f"from=all&cluster={sample.CLUSTER}&gid={'0' * 32}", "from=all&storm=gone"]
    for path in PATHS:
        for state in states:
            assert "Something went wrong" not in str(page(store, path, f"?{state}", None, now)[0]), (path, state)
    for order in ORDERS:
        for direction in ("asc", "desc"):
            fleet.block(store, parse("/", "?from=all"), {"sortModel": [{"colId": order, "sort": direction}]}, now)
    Search(recording).find("a")
    episode = {"cluster": sample.CLUSTER, "group_id": "billing-worker", "incarnation": 0}
    store.episode_verdicts(episode | {"first_generation_id": 1, "last_generation_id": 9})
    for text in HOSTILE:
        store.group(sample.CLUSTER, text)
        store.diagnoses(text, [text, "billing-worker"])
        store.marks(Window(now - 3_600_000, now + 1, is_live=True), sample.CLUSTER, [text])
    return recording.asked


def plain(rows: Rows, sql: str) -> tuple[list[Any], bool]:
    """Nine digits of numbers with a fraction, and rows in order if the query has one."""
    described = [_plain(row) for row in rows.rows]
    return (described if "ORDER BY" in sql.rpartition(")")[2] else sorted(described, key=repr)), rows.is_capped


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((key, _plain(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return f"{value:.9g} of {type(value).__name__}" if isinstance(value, float) else value


def assert_same(folder: Path, lake: DatabricksLake, questions, prefixes) -> int:
    """How many of them had an answer."""
    local, answered = LocalLake(folder), 0
    for sql, tables, cap, parameters in questions:
        expected = plain(local.query(sql, tables, cap, parameters, prefixes), sql)
        assert expected == plain(lake.query(sql, tables, cap, parameters, prefixes), sql), (sql, parameters)
        answered += bool(expected[0])
    return answered


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
    # What sorts last where nothing is known is each engine's own.
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
