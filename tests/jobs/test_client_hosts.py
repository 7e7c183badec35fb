"""Under a policy, only bronze contains addresses, and a rebuild applies another policy to all rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deltalake import DeltaTable

from jobs.analyze import analyze
from jobs.build import rebuild_all
from jobs.config.settings import Settings
from jobs.replay import Capture, replay, split
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from pipelines.silver.client_hosts import HostPolicy
from schemas.bronze import BRONZE, COORDINATOR_RECORDS
from schemas.gold import GOLD
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from testing.recordings import CAPTURES
from tests.jobs.conftest import CLUSTER, differing, silver

RECORDED = ("127.0.0.1", "localhost")
KEY = "hunter2-of-hosts"


@pytest.fixture
def settings(warehouse, monkeypatch) -> Settings:
    monkeypatch.setenv("HOST_KEY", KEY)
    return Settings(warehouse=warehouse, client_host=HostPolicy.HASH, client_host_key="env:HOST_KEY")


def described(warehouse) -> str:
    """Return the whole content of silver, gold and the jobs' caches as text."""
    tables = [t for t in (*SILVER, *REASSIGNMENT_TABLES, *GOLD) if DeltaTable.is_deltatable(table_path(warehouse, t))]
    rows = [repr(DeltaTable(table_path(warehouse, t)).to_pyarrow_table().to_pylist()) for t in tables]
    logs = [p.read_text() for t in tables for p in (warehouse / t.name / "_delta_log").glob("*.json")]
    memory = [p.read_text() for p in (warehouse / "_checkpoints").rglob("*.json")]
    return "\n".join((*rows, *logs, *memory))


def test_only_bronze_holds_addresses_and_nothing_holds_the_key(spark, settings, warehouse) -> None:
    create_tables(spark, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES))
    capture = Capture(CAPTURES / "share_registry")
    for batch in split(capture, ("offsets", "log"), 2, None):
        replay(spark, settings, CLUSTER, capture.meta, batch)
    analyze(spark, settings)
    found, hashed = described(warehouse), silver(warehouse)
    assert "hmac:" in found
    assert [word for word in (*RECORDED, KEY) if word in found] == []
    bronze = DeltaTable(table_path(warehouse, COORDINATOR_RECORDS)).to_pyarrow_table(columns=["body"]).to_pylist()
    assert RECORDED[0] in repr(bronze)

    rebuild_all(spark, settings)
    assert differing(hashed, silver(warehouse)) == {}
    rebuild_all(spark, replace(settings, client_host=HostPolicy.TRUNCATE))
    assert "127.0.0.0/24" in repr(silver(warehouse))
    assert "hmac:" not in repr(silver(warehouse))
