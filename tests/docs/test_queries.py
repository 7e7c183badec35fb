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

from jobs.tables.paths import table_path
from testing.warehouses import recorded
from testing.warehouses.recorded import TABLES

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "queries.md"
QUERIES = dict(
    re.findall(
        r"^## ([^\n]+)\n(?:(?!^## ).)*?^```sql\n(.+?)^```", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
)
GRAFANA = re.findall(
    r"^ *```sql\n(.+?)^ *```",
    (DOCUMENT.parent / "how-to" / "draw-tables-in-grafana.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
FILLED_LATER = {"diagnoses", "storms"}
"""Tables that this recording need not fill."""


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("queries")
    recorded.write(folder)
    return folder


@pytest.fixture(scope="session")
def of_duckdb(warehouse):
    """`of_duckdb(sql)` → rows as plain values, read as the pages read."""
    lake = duckdb.connect(config={"enable_external_access": "false", "autoload_known_extensions": "false"})
    lake.execute("SET TimeZone = 'UTC'")
    for table in TABLES:
        lake.register(table.name, deltalake.DeltaTable(table_path(warehouse, table)).to_pyarrow_dataset())
    yield lambda sql: plain(lake.sql(sql).to_arrow_table())
    lake.close()


@pytest.fixture(scope="session")
def of_spark(spark, warehouse):
    """`of_spark(sql)` → the same of Spark SQL."""
    for table in TABLES:
        rows = deltalake.DeltaTable(table_path(warehouse, table)).to_pyarrow_table()
        # Spark takes no empty Arrow table.
        made = spark.createDataFrame(rows) if rows.num_rows else spark.createDataFrame([], table.ddl)
        made.createOrReplaceTempView(table.name)
    yield lambda sql: plain(spark.sql(sql).toArrow())
    for table in TABLES:
        spark.catalog.dropTempView(table.name)


def plain(found: pa.Table) -> list[dict]:
    return [{name: value_of(value) for name, value in row.items()} for row in found.to_pylist()]


def value_of(value: Any) -> Any:
    """The same for both engines, which have types of their own for timestamps, spans and sums."""
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
def test_a_query_gives_the_same_in_spark_and_in_duckdb(of_spark, of_duckdb, question) -> None:
    sql = QUERIES[question]
    found = of_duckdb(sql)
    assert [{name: near(value) for name, value in row.items()} for row in of_spark(sql)] == found
    assert found or any(f"FROM {name}" in sql for name in FILLED_LATER), "nothing to compare"


def test_the_answers_are_what_was_recorded(of_duckdb) -> None:
    """The recording's facts: one deploy at 40 s, members killed with sessions of 6 s, one mark that says no time."""

    def ask(question: str) -> list[dict]:
        return of_duckdb(QUERIES[question])

    assert "pricing-loader" == ask("Which groups lost most in the last seven days?")[0]["group_id"], "slow callbacks"
    (stop,) = ask("Why did a group stop at 07:25:40?")
    assert ("session_expired", "observed", "member_lost", 3) == tuple(
        stop[name] for name in ("trigger", "trigger_evidence", "cause", "partitions")
    )
    (deploy,) = ask("What did each deploy set off within ten minutes?")
    assert ("v2.31", 17, 4) == tuple(deploy[name] for name in ("text", "rebalances", "groups_hit"))
    expired = ask("How long from a session that expired to the first commit after it?")
    assert ["imports-joiner-2", "imports-joiner-3", "routing-enricher-1"] == [row["client_id"] for row in expired]
    assert all(5_500 < row["stopped_ms"] < 6_500 for row in expired), "sessions of 6 s"
    assert "pricing-loader-1" in {row["client_id"] for row in ask("For whom does everybody wait?")[:2]}
    assert ["v2.31"] == [row["text"] for row in ask("Which marks came shortly before a storm?")]
    moved = {(row["partition"], row["state"]) for row in ask("Which reassignments moved how much, and how fast?")}
    assert {(0, "completed"), (1, "completed"), (2, "cancelled"), (4, "completed"), (5, "completed")} == moved
    (unread,) = ask("What could not be read, and why?")
    assert ("churn", "admin.jsonl", "invalid_timestamp", 1) == tuple(unread.values())[:4]
    static = [row for row in ask("Who is in a group now, and with which timeouts?") if row["session_timeout_ms"]]
    assert {("pricing-enricher-static", 20_000)} == {(row["group_id"], row["session_timeout_ms"]) for row in static}
    assert [15] == [row["missed"] for row in ask("Where was nothing read?")]


@pytest.mark.parametrize("query", GRAFANA, ids=["lost", "rebalances", "marks"])
def test_the_panels_of_the_how_to_page_find_something_in_a_range(of_duckdb, query) -> None:
    def asked(first: str, last: str):
        return of_duckdb(query.replace("${__from:date:iso}", first).replace("${__to:date:iso}", last))

    assert asked("2026-11-21T00:00:00.000Z", "2026-11-22T00:00:00.000Z")
    assert not asked("2020-11-21T00:00:00.000Z", "2020-11-22T00:00:00.000Z")


def test_the_lost_seconds_of_the_how_to_page_are_those_of_the_tables(of_duckdb) -> None:
    panel = GRAFANA[0].replace("${__from:date:iso}", "2020-01-01T00:00:00Z")
    panel = panel.replace("${__to:date:iso}", "2030-01-01T00:00:00Z")
    (shown,) = of_duckdb(f"SELECT sum(lost_resource_seconds) AS lost FROM ({panel})")
    (known,) = of_duckdb("SELECT sum(lost_resource_seconds) AS lost FROM rebalances")
    assert abs(float(shown["lost"]) - float(known["lost"])) < 0.01 * float(known["lost"])
