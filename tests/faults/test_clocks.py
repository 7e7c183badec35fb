"""Records whose times go back by minutes, as of a coordinator whose clock is behind that of the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from jobs.delta_io import create_tables, table_path
from jobs.ingest import start, wait
from jobs.lab.broker import Broker
from jobs.replay import Capture, Line
from jobs.settings import Settings
from pipelines.bronze_batch import SourceRecord
from schemas.silver import SILVER
from tests.faults.matrix import Trial
from tests.faults.test_broker import cluster_of
from tests.faults.test_build import compared
from tests.jobs.conftest import NAME, built, differing, rebuilt, record, replayed, silver
from tests.silver.rebuilding import CAPTURES

pytestmark = pytest.mark.faults

BEHIND_MS = 300_000


class Behind(Capture):
    """The recorded history, in the middle third of each partition by a clock that is behind; without the lines, whose
    times are by the coordinator's clock as well.
    """

    def lines(self) -> Iterator[Line]:
        return iter(())

    def records(self) -> list[SourceRecord]:
        records = super().records()
        newest = {r.partition: r.offset for r in records}
        return [earlier(r) if 1 <= 3 * r.offset / newest[r.partition] < 2 else r for r in records]


def earlier(record: SourceRecord) -> SourceRecord:
    """With every time in it that is by the coordinator's clock."""
    value = record.value
    for at in range(len(value or b"") - 7):
        told = int.from_bytes(value[at : at + 8])
        if abs(told - record.timestamp_ms) < BEHIND_MS / 2:
            value = value[:at] + (told - BEHIND_MS).to_bytes(8) + value[at + 8 :]
    return record._replace(timestamp_ms=record.timestamp_ms - BEHIND_MS, value=value)


BACK = Behind(CAPTURES / NAME)


@pytest.fixture(scope="module")
def at_once(spark, tmp_path_factory) -> dict[str, list[str]]:
    """Silver of one batch, in which no length is negative."""
    warehouse = tmp_path_factory.mktemp("at_once") / "warehouse"
    tables = replayed(spark, warehouse, batches=1, seed=None, capture=BACK)
    assert negative(warehouse) == []
    return tables


def negative(warehouse) -> list[str]:
    """Lengths of time below zero, by table and column."""
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
        wait(start(spark, settings, once=True, on_batch=built(spark, settings)))
    trial.found = compared(at_once, silver(warehouse))
    assert trial.found.is_identical
