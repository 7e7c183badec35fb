"""A recorded history in a real broker's `__consumer_offsets` and events topic, and the tables it must give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from deltalake import DeltaTable

from jobs.build import affected_groups, rebuild_affected, rebuild_all
from jobs.config.clusters import Cluster
from jobs.config.settings import Settings
from jobs.lab.broker import Broker
from jobs.replay import Capture, replay, split
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from schemas.bronze import BRONZE, COORDINATOR_EVENTS, COORDINATOR_RECORDS, OFFSET_COMMITS
from schemas.silver import REASSIGNMENT_TABLES, SILVER
from testing.recordings import CAPTURES

NAME, CLUSTER = "eager_churn", "kafka"
RECORDED = Capture(CAPTURES / NAME)
HISTORY = (COORDINATOR_RECORDS, OFFSET_COMMITS, COORDINATOR_EVENTS)


def silver(warehouse: Path) -> dict[str, list[str]]:
    """Return every silver row, independent of the order in its files."""
    tables = {t.name: DeltaTable(table_path(warehouse, t)).to_pyarrow_table(columns=list(t.names)) for t in SILVER}
    return {name: sorted(map(repr, rows.to_pylist())) for name, rows in tables.items()}


def differing(expected: dict[str, list[str]], found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return by table the rows that only one side has, each after the side's sign; empty if the tables are equal."""
    sides = {}
    for name, rows in expected.items():
        wanted, present = set(rows), set(found[name])
        only_one = [f"- {row}" for row in rows if row not in present]
        only_one += [f"+ {row}" for row in found[name] if row not in wanted]
        if len(rows) != len(found[name]):
            only_one.append(f"{len(rows)} rows, {len(found[name])} found")
        sides[name] = only_one
    return {name: rows for name, rows in sides.items() if rows}


def replayed(
    spark, warehouse: Path, *, batches: int, seed: int | None, capture: Capture = RECORDED
) -> dict[str, list[str]]:
    """Replay the recorded history in this number of batches."""
    create_tables(spark, warehouse, (*BRONZE, *SILVER, *REASSIGNMENT_TABLES))
    settings = Settings(warehouse=warehouse)
    for batch in split(capture, ("offsets", "log"), batches, seed):
        replay(spark, settings, CLUSTER, capture.meta, batch)
    return silver(warehouse)


@pytest.fixture(scope="session")
def expected(spark, tmp_path_factory) -> dict[str, list[str]]:
    """The tables of one undisturbed batch."""
    return replayed(spark, tmp_path_factory.mktemp("expected") / "warehouse", batches=1, seed=None)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Iterator[Cluster]:
    """A broker whose topics hold the recorded history, at the offsets and times it was recorded with."""
    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1}
    with Broker(tmp_path_factory.mktemp("recorded"), overrides=overrides) as broker:
        cluster = Cluster(name=CLUSTER, bootstrap_servers=broker.bootstrap_servers, max_offsets_per_trigger=4_000)
        record(cluster)
        yield cluster


def record(cluster: Cluster, capture: Capture = RECORDED) -> None:
    """Make both topics and write the recorded history into them."""
    partitions = capture.meta["offsets_topic"]["partitions"]
    topics = [NewTopic("__consumer_offsets", partitions, 1), NewTopic(cluster.events_topic, 2, 1)]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for made in admin.create_topics(topics).values():
        made.result(120)
    # Only an admin client's id may write to an internal topic.
    own = {"client.id": "__admin_client", "enable.idempotence": True}  # a record that is sent again keeps its position
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **own})
    failed = []

    def delivered(error, message) -> None:
        if error is not None:
            failed.append((message.topic(), message.partition(), str(error)))

    for r in capture.records():
        place = {"partition": r.partition, "timestamp": r.timestamp_ms, "on_delivery": delivered}
        producer.produce("__consumer_offsets", r.value, r.key, **place)
    for line in capture.lines():
        producer.produce(cluster.events_topic, line.text.encode(), partition=line.number % 2, on_delivery=delivered)
    assert producer.flush(120) == 0
    assert failed == []


def built(spark, settings: Settings):
    """Do what `up` does with each batch."""

    def build(new) -> None:
        history = {table: new[table] for table in HISTORY if table in new}
        if history:
            rebuild_affected(spark, settings, affected_groups(history))

    return build


def rebuilt(spark, warehouse: Path) -> dict[str, list[str]]:
    rebuild_all(spark, Settings(warehouse=warehouse))
    return silver(warehouse)
