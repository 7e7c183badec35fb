"""The facts of alerts are the same wherever the tables are: read by DuckDB from a folder, or by Spark."""

from __future__ import annotations

import pytest

from dashboards.lake.lake import LocalLake
from dashboards.queries.store import Store
from jobs.alerting.alert_facts import FactReader
from jobs.spark.spark_lake import lake_of
from jobs.tables.location import bind
from pipelines.gold.alerts.alert import AlertLimits
from testing.warehouses import recorded

LIMITS = AlertLimits(stuck_ms=1, stale_ms=120_000, availability=0.9999)


@pytest.mark.usefixtures("spark")
def test_spark_finds_the_facts_that_a_folder_gives(tmp_path) -> None:
    folder, elsewhere = tmp_path / "tables", tmp_path / "elsewhere"
    recorded.write(folder)
    bind(elsewhere, str(folder))
    until = Store(LocalLake(folder)).span("churn").last_at
    here, there = (
        FactReader(lake=lake, warehouse=warehouse, limits=LIMITS)
        for lake, warehouse in ((LocalLake(folder), folder), (lake_of(elsewhere), elsewhere))
    )
    assert here.clusters() == there.clusters()
    found = here.facts("churn", until, None)
    assert found.losses, "otherwise not every query is asked"
    assert found == there.facts("churn", until, None)
