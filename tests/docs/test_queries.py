"""Every query of docs/queries.md runs in Spark SQL and, as the pages read, in duckdb, with the same answer."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pytest

from jobs.analyze import analyze
from jobs.delta_io import create_tables, table_path
from jobs.replay import Capture, replay, split
from jobs.settings import Settings
from schemas.bronze import BRONZE, COVERAGE, QUARANTINE
from schemas.gold import GOLD, MARKS, STORMS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from tests.silver.rebuilding import CAPTURES

TABLES = (*SILVER, *REASSIGNMENT_TABLES, *GOLD, COVERAGE, QUARANTINE)
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "queries.md"
QUERIES = dict(
    re.findall(
        r"^## ([^\n]+)\n(?:(?!^## ).)*?^```sql\n(.+?)^```", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
)
FILLED_LATER = {"diagnoses", "storms"}
"""Tables that this recording need not fill."""


@pytest.fixture(scope="session")
def warehouse_of_queries(spark, tmp_path_factory) -> Path:
    """A recording of churn with a deploy announced in its middle, one of reassignments, one gap and one storm."""
    folder = tmp_path_factory.mktemp("queries") / "warehouse"
    settings = Settings(warehouse=folder)
    create_tables(spark, folder, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES, MARKS))
    for cluster, name, sources in (
        ("kafka", "eager_churn", ("offsets", "log", "admin")),
        ("moves", "reassignment", ("offsets", "log", "admin")),
    ):
        capture = Capture(CAPTURES / name)
        (batch,) = split(capture, sources, 1, None)
        if cluster == "kafka":
            batch.observations += [(10**6 + i, body) for i, body in enumerate(announced(capture.meta["started_ms"]))]
        replay(spark, settings, cluster, capture.meta, batch)
    analyze(spark, settings)
    create_tables(spark, folder, GOLD)
    began = datetime(2026, 11, 21, 7, 25, 50, tzinfo=UTC)
    gap = {"cluster": "kafka", "source": "__consumer_offsets", "source_partition": 3, "log_epoch": 0, "from_offset": 10,
           "to_offset": 25, "is_gap": True, "gap_reason": "deleted before it was read", "records": 0, "skipped": 0,
           "quarantined": 0}  # fmt: skip
    storm = {"cluster": "kafka", "storm_id": "by hand", "scope": "group", "started_at": began, "detected_at": began,
             "is_open": True, "groups": 1, "group_ids": ["imports-joiner"], "rebalances": 3, "unexplained_rebalances": 3,
             "lost_resource_seconds": 12.0, "suspected_cause": "unknown", "score": 0.0, "differences": []}  # fmt: skip
    for table, row in ((COVERAGE, gap), (STORMS, storm)):
        path = table_path(folder, table)
        shape = deltalake.DeltaTable(path).to_pyarrow_table().schema
        rows = pa.Table.from_pylist([{name: row.get(name) for name in table.names}], schema=shape)
        spark.createDataFrame(rows).write.format("delta").mode("append").save(path)
    return folder


def announced(started_ms: int) -> list[dict[str, Any]]:
    said = {"observed_at_ms": started_ms + 40_000, "source": "mark", "kind": "mark", "mark_kind": "deploy"}
    return [said | {"text": "v2.31", "at": started_ms + 40_000}, said | {"text": "no time", "at": "noon"}]


@pytest.fixture(scope="session")
def answers(spark, warehouse_of_queries):
    """`ask(sql)` → rows of both engines, as plain values."""
    lake = duckdb.connect(config={"enable_external_access": "false", "autoload_known_extensions": "false"})
    lake.execute("SET TimeZone = 'UTC'")
    for table in TABLES:
        path = table_path(warehouse_of_queries, table)
        spark.read.format("delta").load(path).createOrReplaceTempView(table.name)
        lake.register(table.name, deltalake.DeltaTable(path).to_pyarrow_dataset())

    def ask(sql: str) -> tuple[list[dict], list[dict]]:
        return plain(spark.sql(sql).toArrow()), plain(lake.sql(sql).to_arrow_table())

    yield ask
    for table in TABLES:
        spark.catalog.dropTempView(table.name)
    lake.close()


def plain(found: pa.Table) -> list[dict]:
    return [{name: value_of(value) for name, value in row.items()} for row in found.to_pylist()]


def value_of(value: Any) -> Any:
    """The same for both engines, which have types of their own for instants, spans and sums."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    if isinstance(value, pa.MonthDayNano):
        return (timedelta(days=value.days) + timedelta(microseconds=value.nanoseconds // 1000)).total_seconds()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float | int | Decimal) and not isinstance(value, bool):
        return float(value)
    return value.isoformat() if isinstance(value, date) else value


def near(value: Any) -> Any:
    """Engines round halves in different ways."""
    return pytest.approx(value, abs=0.06) if isinstance(value, float) else value


@pytest.mark.parametrize("question", QUERIES)
def test_a_query_gives_the_same_in_spark_and_in_duckdb(answers, question) -> None:
    sql = QUERIES[question]
    of_spark, of_duckdb = answers(sql)
    assert [{name: near(value) for name, value in row.items()} for row in of_spark] == of_duckdb
    assert of_spark or any(f"FROM {name}" in sql for name in FILLED_LATER), "nothing to compare"


def test_the_answers_are_what_was_recorded(answers) -> None:
    """The recording's facts: one deploy at 40 s, a killed member at 34 s whose session expired 6 s later, an unreadable mark."""

    def ask(question: str) -> list[dict]:
        return answers(QUERIES[question])[1]

    assert "pricing-loader" == ask("Which groups lost most in the last seven days?")[0]["group_id"]
    (stop,) = ask("Why did a group stop at 07:25:40?")
    assert ("session_expired", "observed", "member_lost", 3) == tuple(
        stop[name] for name in ("trigger", "trigger_evidence", "cause", "partitions")
    )
    (deploy,) = ask("What did each deploy set off within ten minutes?")
    assert ("v2.31", 17, 4) == tuple(deploy[name] for name in ("text", "rebalances", "groups_hit"))
    expired = ask("How long from a session that expired to the first commit after it?")
    assert ["imports-joiner-2", "imports-joiner-3", "routing-enricher-1"] == [row["client_id"] for row in expired]
    assert all(5_500 < row["stopped_ms"] < 6_500 for row in expired), "sessions of 6 s"
    assert {"pricing-loader-1"} == {row["client_id"] for row in ask("For whom does everybody wait?")[:1]}
    assert ["v2.31"] == [row["text"] for row in ask("Which marks came shortly before a storm?")]
    moved = {(row["partition"], row["state"]) for row in ask("Which reassignments moved how much, and how fast?")}
    assert {(0, "completed"), (1, "completed"), (2, "cancelled"), (4, "completed"), (5, "completed")} == moved
    unread = {(row["source"], row["reason"], row["messages"]) for row in ask("What could not be read, and why?")}
    assert ("admin.jsonl", "invalid_timestamp", 1) in unread
    assert [15] == [row["missed"] for row in ask("Where was nothing read?")]
