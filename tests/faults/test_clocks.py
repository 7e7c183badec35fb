"""Records whose times go back by minutes, as when a coordinator's clock is behind that of its predecessor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deltalake import DeltaTable

from jobs.config.settings import Settings
from jobs.ingest import start
from jobs.lab.broker import Broker
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from schemas.silver import SILVER
from tests.faults.matrix import Trial
from tests.faults.test_broker import cluster_of
from tests.faults.test_build import compared
from tests.jobs.conftest import built, differing, rebuilt, record, replayed, silver
from tests.silver.behind import BACK

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def at_once(spark, tmp_path_factory) -> dict[str, list[str]]:
    """Return silver of one batch, in which no length is negative."""
    warehouse = tmp_path_factory.mktemp("at_once") / "warehouse"
    tables = replayed(spark, warehouse, batches=1, seed=None, capture=BACK)
    assert negative(warehouse) == []
    return tables


def negative(warehouse) -> list[str]:
    """Return the negative lengths of time, by table and column."""
    return [
        f"{table.name}.{column} {row}"
        for table in SILVER
        for row in DeltaTable(table_path(warehouse, table)).to_pyarrow_table().to_pylist()
        for column, value in row.items()
        if "_ms" in column and value is not None and value < 0
    ]


@pytest.mark.parametrize("batches", [7, 20])
def test_however_batched_silver_is_the_same(matrix, spark, warehouse, at_once, batches, number) -> None:
    trial = matrix(f"record times 5 min back and forth: {batches} batches", Trial(is_hit=True))
    found = replayed(spark, warehouse, batches=batches, seed=number, capture=BACK)
    trial.found = compared(at_once, found)
    assert trial.found.is_identical
    assert differing(at_once, rebuilt(spark, warehouse)) == {}


def test_read_from_kafka_silver_is_the_same(matrix, spark, tmp_path, warehouse, at_once, number) -> None:
    trial = matrix("record times 5 min back and forth: from a broker", Trial(is_hit=True))
    with Broker(tmp_path / "broker", overrides={"log.cleaner.enable": "false", "log.retention.ms": -1}) as broker:
        cluster = replace(cluster_of(broker), max_offsets_per_trigger=1_000)
        record(cluster, BACK)
        settings = Settings(warehouse=warehouse, clusters=(cluster,))
        create_tables(spark, warehouse, SILVER)
        start(spark, settings, once=True, on_batch=built(spark, settings)).wait()
    trial.found = compared(at_once, silver(warehouse))
    assert trial.found.is_identical
