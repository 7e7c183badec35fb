"""A client that may only commit offsets makes any number of groups, with ids of up to 32 kB: silver stays bounded."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dashboards.app import create_app
from dashboards.lake.lake import LocalLake
from dashboards.pages import fleet, health
from dashboards.queries.health_store import HealthStore
from dashboards.queries.store import Store
from dashboards.urlstate import parse
from dashboards.web.search import Search
from jobs.build import affected_groups, rebuild_affected, rebuild_all
from jobs.config.settings import Settings
from jobs.silver import group_limits
from jobs.silver.requeue import reopen
from jobs.tables.append import append
from jobs.tables.create_tables import create_tables
from jobs.tables.new_rows import NewRows
from schemas.bronze import ADMIN_OBSERVATIONS, BRONZE, OFFSET_COMMITS
from schemas.operations import LIMITS_REACHED
from schemas.silver import GENERATIONS, GROUPS, REASSIGNMENT_TABLES, SILVER, STALLS
from testing import sample
from tests.hostile.filling import add, rows
from tests.hostile.records import START, TOPIC, commit, generation, partitions
from tests.jobs.conftest import silver


@pytest.fixture
def settings(spark, warehouse, monkeypatch) -> Settings:
    monkeypatch.setattr(group_limits, "COUNT_SECONDS", 0.0)
    create_tables(spark, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES))
    return Settings(warehouse=warehouse)


def groups(warehouse: Path) -> list[str]:
    return sorted(row["group_id"] for row in rows(warehouse, GROUPS))


def test_groups_with_long_ids_stay_in_bronze_and_are_counted_and_shown(spark, settings) -> None:
    warehouse = settings.warehouse
    hostile = [commit(f"{number:05}" + "x" * 32_000) for number in range(3_000)]
    add(spark, settings, [commit("payments"), *hostile, commit("é" * 512), commit("é" * 513)])
    assert ["payments", "é" * 512] == groups(warehouse)
    assert 3_003 == len({row["group_id"] for row in rows(warehouse, OFFSET_COMMITS)})
    (limit,) = rows(warehouse, LIMITS_REACHED)
    assert ("max_name_bytes", 1_024, 3_001) == (limit["limit_name"], limit["allowed"], limit["groups"])
    assert len(limit["example"].encode()) <= 120
    store = Store(LocalLake(warehouse, fresh_seconds=0))
    now = START + 3_600_000
    assert "payments" in str(fleet.block(store, parse("/", ""), {"startRow": 0}, now))
    page = str(health._limits(HealthStore(store.lake)))
    assert "3,001 groups not built" in page
    assert "longer than max_name_bytes, 1,024" in page
    assert 1 == Search(store.lake).find("payments")[1]
    rebuild_all(spark, settings)
    assert ["payments", "é" * 512] == groups(warehouse)


def test_of_too_many_groups_the_earliest_are_built_and_the_rest_is_counted(spark, settings) -> None:
    warehouse = settings.warehouse
    settings = replace(settings, max_groups=10)
    names = [f"group-{number:02}" for number in range(25)]
    add(spark, settings, [commit(name) for name in names[:5]])
    add(spark, settings, [commit(name) for name in names[5:]], first_offset=5)
    assert names[:10] == groups(warehouse)
    add(spark, settings, [commit(names[3]), commit(names[20])], first_offset=25)
    assert names[:10] == groups(warehouse), "groups that are built go on, others stay out"
    last = max(rows(warehouse, LIMITS_REACHED), key=lambda row: row["reached_at"])
    assert ("max_groups", 10, 15) == (last["limit_name"], last["allowed"], last["groups"])
    rebuild_all(spark, settings)
    assert names[:10] == groups(warehouse)
    rebuild_all(spark, replace(settings, max_groups=100))
    assert names == groups(warehouse)


def test_a_higher_limit_costs_what_was_too_large(spark, settings) -> None:
    low = replace(settings, max_resources=10)
    many = partitions(range(30))
    add(spark, low, [generation(1, many), generation(2, many)])
    assert ["too_large", "too_large"] == [row["not_costed"] for row in rows(settings.warehouse, GENERATIONS)]
    assert 0 == reopen(spark, settings.warehouse, low.limits)
    assert 2 == reopen(spark, settings.warehouse, settings.limits)
    assert 0 == reopen(spark, settings.warehouse, settings.limits)
    rebuild_all(spark, settings)
    assert [None, None] == [row["not_costed"] for row in rows(settings.warehouse, GENERATIONS)]
    assert 30 == len(rows(settings.warehouse, STALLS))


def poll(spark, settings: Settings, count: int) -> None:
    body = {"kind": "topic", "topic": TOPIC, "topic_id": None, "partitions": [{"partition": p} for p in range(count)]}
    seen = {"cluster": "c", "observed_at": datetime.now(UTC), "source": "poll", "kind": "topic", "subject": TOPIC}
    new = NewRows.of(ADMIN_OBSERVATIONS, [seen | {"body": json.dumps(body)}])
    append(spark, settings.warehouse, new)
    rebuild_affected(spark, settings, affected_groups({ADMIN_OBSERVATIONS: new}))


def test_partitions_that_are_added_count_from_the_poll_on_that_sees_them(spark, settings) -> None:
    warehouse = settings.warehouse
    poll(spark, settings, 12)
    add(spark, settings, [generation(1, partitions(range(24))), generation(2, partitions(range(24)))])
    assert 12 == len(rows(warehouse, STALLS))
    poll(spark, settings, 24)
    assert 24 == len(rows(warehouse, STALLS))
    assert [None, None] == [row["not_costed"] for row in rows(warehouse, GENERATIONS)]
    found = silver(warehouse)
    rebuild_all(spark, settings)
    assert found == silver(warehouse)


def test_the_pages_hold_a_warehouse_of_an_earlier_release_with_long_ids(tmp_path) -> None:
    """Silver of before the limits has them until it is rebuilt."""
    now = START + 3_600_000
    named = sample.everyday(now)
    hostile = [named["groups"][0] | {"group_id": f"{number:05}" + "x" * 32_000} for number in range(3_000)]
    sample.write(tmp_path, named | {"groups": named["groups"] + hostile})
    client = create_app(LocalLake(tmp_path), now=lambda: now).server.test_client()
    found = client.get("/search?q=billing").json["groups"]
    assert ["billing-worker"] == [hit["label"] for hit in found]
    rows = client.get("/rows?request={}").json
    assert len(named["groups"]) + 3_000 == rows["rowCount"] == len(rows["rowData"])
    assert max(len(row["group"]) for row in rows["rowData"]) <= 120
    store = Store(LocalLake(tmp_path))
    fleet.render(store, parse("/", ""), now)
    (hit,) = client.get("/search?q=02999x").json["groups"]
    state = parse(*hit["href"].split("?"))
    assert "02999" + "x" * 32_000 == store.group_by_hash(state.cluster, state.gid)
