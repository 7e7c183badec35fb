"""Views over named tables: their columns are as described, their sums are those of the tables and of the pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC

import pytest
from deltalake import DeltaTable

from dashboards.lake.lake import LocalLake
from dashboards.queries.gold_store import GoldStore
from dashboards.urlstate import Window
from jobs.tables.catalog import views
from jobs.tables.catalog.views import create_views
from jobs.tables.location import bind
from schemas.folded_rows import count_of
from schemas.gold import VERDICTS
from schemas.silver import GENERATIONS
from schemas.views import V_LOST_BY_CAUSE, V_REBALANCES, VIEWS
from testing.warehouses.named import NamedWarehouse, named

LOST = ("lost_resource_seconds_min", "lost_resource_seconds", "lost_resource_seconds_max")
KEY = ("cluster", "group_id", "incarnation", "generation_id")


@pytest.fixture(scope="module")
def here(spark, tmp_path_factory) -> Iterator[NamedWarehouse]:
    with named(spark, tmp_path_factory.mktemp("views"), "viewed") as found:
        yield found


@pytest.fixture(scope="module")
def rows(spark, here) -> dict[str, list[dict]]:
    """Rows of the views, and of the tables that they read."""
    shown = {view.name: spark.table(f"{here.schema}.{view.name}").toArrow().to_pylist() for view in VIEWS}
    read = {
        table.name: DeltaTable(here.tables / table.name).to_pyarrow_table().to_pylist()
        for table in (GENERATIONS, VERDICTS)
    }
    return shown | read


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_a_view_has_the_described_columns_with_their_types_and_comments(spark, here, view) -> None:
    shown = spark.table(f"{here.schema}.{view.name}").schema
    assert [(c.name, c.type, c.comment) for c in view.columns] == [
        (field.name, field.dataType.simpleString().upper(), field.metadata["comment"]) for field in shown
    ]
    described = {
        row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE EXTENDED {here.schema}.{view.name}").collect()
    }
    assert view.comment == described["Comment"]


def test_comments_fit_into_a_hive_metastore() -> None:
    assert [] == [column.name for view in VIEWS for column in view.columns if len(column.comment) > 256]


def test_every_generation_is_a_row_with_the_verdict_on_it(rows) -> None:
    shown = {tuple(row[name] for name in KEY): row for row in rows["v_rebalances"]}
    assert len(shown) == len(rows["v_rebalances"]) == len(rows["generations"])
    judged = {tuple(row[name] for name in KEY): row for row in rows["verdicts"]}
    assert judged.keys() < shown.keys(), "an open or overtaken rebalance has no verdict"
    for key, row in shown.items():
        verdict = judged.get(key)
        assert (row["verdict"], row["cause"]) == ((verdict["verdict"], verdict["cause"]) if verdict else (None, None))
        assert [row[name] for name in LOST] == [verdict and verdict[name] for name in LOST]
        assert row["instances"] == (verdict and ", ".join(verdict["instances"]))
        assert row["verdict_evidence"] == (verdict and verdict["evidence"])
    for generation in rows["generations"]:
        row = shown[tuple(generation[name] for name in KEY)]
        length = generation["rebalance_ms"]
        assert row["duration_seconds"] == (None if length is None else length / 1000)
        assert (row["trigger"], row["duration_evidence"]) == (generation["trigger"], generation["evidence"])


def test_rebalances_and_losses_add_up_to_those_of_the_tables(rows) -> None:
    assert count_of(rows["generations"]) == sum(row["rebalances"] for row in rows["v_rebalances"])
    assert count_of(rows["verdicts"]) == sum(row["rebalances"] for row in rows["v_lost_by_cause"])
    expected: dict[tuple, list[float]] = defaultdict(lambda: [0.0] * len(LOST))
    for row in rows["verdicts"]:
        key = (row["cluster"], row["group_id"], row["joined_at"].astimezone(UTC).date(), row["verdict"], row["cause"])
        expected[key] = [before + row[name] for before, name in zip(expected[key], LOST, strict=True)]
    found = {
        tuple(row[name] for name in ("cluster", "group_id", "day", "verdict", "cause")): [row[name] for name in LOST]
        for row in rows["v_lost_by_cause"]
    }
    assert expected.keys() == found.keys()
    assert all(found[key] == pytest.approx(sums) for key, sums in expected.items())
    assert sum(sums[1] for sums in found.values()) > 0
    for row in rows["v_lost_by_cause"]:
        graded = ("rebalances_observed", "rebalances_bounded", "rebalances_inferred")
        assert row["rebalances"] == sum(row[name] for name in graded)


def test_the_pages_show_the_same_sums(here, rows) -> None:
    window = Window(start=0, end=4_000_000_000_000, is_live=False)
    pages = GoldStore(LocalLake(here.tables)).fleet_verdicts(window)
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0, 0.0])
    for row in rows["v_lost_by_cause"]:
        of = sums[row["verdict"], row["cause"]]
        of[0] += row["rebalances"]
        of[1] += row["lost_resource_seconds"]
    assert {(row["verdict"], row["cause"]): [row["rebalances"], pytest.approx(row["lost"])] for row in pages} == sums


def test_a_day_is_of_utc_in_a_session_of_another_time_zone(spark, here, rows) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")
    days = {row["day"] for row in elsewhere.table(f"{here.schema}.v_lost_by_cause").select("day").collect()}
    assert {row["day"] for row in rows["v_lost_by_cause"]} == days


def test_a_view_is_replaced_only_when_its_definition_changes(here, monkeypatch) -> None:
    statements = []
    monkeypatch.setattr(views, "creation", lambda name, view, query: statements.append(view.name) or "SELECT 1")
    create_views(here.warehouse)
    assert [] == statements
    changed = replace(V_LOST_BY_CAUSE, comment="Another")
    monkeypatch.setattr(views, "VIEWS", (V_REBALANCES, changed))
    create_views(here.warehouse)
    assert [changed.name] == statements


def test_a_missing_view_is_created_where_tables_have_names_and_nowhere_else(spark, here, tmp_path) -> None:
    spark.sql(f"DROP VIEW {here.schema}.v_rebalances")
    create_views(here.warehouse)
    assert spark.catalog.tableExists(f"{here.schema}.v_rebalances")
    bind(tmp_path / "bound", f"{tmp_path}/address")
    create_views(tmp_path / "bound")
    create_views(tmp_path / "folder")
