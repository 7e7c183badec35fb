"""The table as Spark reads it, and a real broker's response."""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from dashboards.lake.lake import LocalLake
from jobs.alerting import alert_table
from jobs.config.clusters import Cluster
from jobs.kafka import kafka_client
from jobs.kafka.topic_watch import TopicWatch
from jobs.lab.broker import Broker
from jobs.tables.create_tables import create, create_tables
from jobs.tables.delta_io import read
from jobs.tables.tables import FolderTables
from schemas.gold import ALERTS
from schemas.records import OFFSETS_TOPIC
from testing.alerts.receiving import free_port
from testing.waiting import wait_until
from tests.alerts.test_incidents import NOW, after, alert


def test_spark_reads_the_table_that_deltalake_wrote_with_its_comments(spark, warehouse):
    create(warehouse, ALERTS)
    rows = after([], alert(), alert("billing"))
    alert_table.save(FolderTables(warehouse), [], rows)
    alert_table.save(FolderTables(warehouse), rows, [row | {"sent_to": ["am"], "last_sent_at": NOW} for row in rows])
    create_tables(spark, warehouse, [ALERTS])
    found = read(spark, warehouse, ALERTS)
    assert {("orders", "am"), ("billing", "am")} == {(row["subject"], row["sent_to"][0]) for row in found.collect()}
    assert {column.name: column.comment for column in ALERTS.columns} == {
        field.name: field.metadata["comment"] for field in found.schema.fields
    }


def test_a_table_that_spark_made_can_be_written(spark, warehouse):
    create_tables(spark, warehouse, [ALERTS])
    create(warehouse, ALERTS)
    rows = after([], alert())
    alert_table.save(FolderTables(warehouse), [], rows)
    assert rows == alert_table.current_alerts(LocalLake(warehouse), NOW, NOW)


def test_what_is_saved_is_read_back_and_nothing_is_written_twice(warehouse):
    create(warehouse, ALERTS)
    lake = LocalLake(warehouse, fresh_seconds=0)
    rows = after([], alert(), alert("billing"))
    alert_table.save(FolderTables(warehouse), [], rows)
    assert sorted(rows, key=lambda row: row["subject"]) == sorted(
        alert_table.current_alerts(lake, NOW, NOW), key=lambda row: row["subject"]
    )
    version = lake.versions()[ALERTS.name]
    alert_table.save(FolderTables(warehouse), rows, [dict(row) for row in rows])
    assert version == lake.versions()[ALERTS.name]


@pytest.fixture
def alone(tmp_path):
    """A separate broker, because a partition to which other tests write no longer has a coordinator."""
    with Broker(tmp_path / "broker") as running:
        yield running


def test_a_broker_says_how_far_its_topic_goes(alone):
    watch = TopicWatch(Cluster(name="kafka", bootstrap_servers=alone.bootstrap_servers))
    assert {} == watch.ask().ends, "nothing has ever happened"
    admin = AdminClient({"bootstrap.servers": alone.bootstrap_servers})
    admin.create_topics([NewTopic(OFFSETS_TOPIC, 2, 1)])[OFFSETS_TOPIC].result(120)
    producer = Producer({"bootstrap.servers": alone.bootstrap_servers, "client.id": "__admin_client"})
    before = watch.ask().ends[1]
    for _ in range(3):
        producer.produce(OFFSETS_TOPIC, b"", b"", 1)
    assert 0 == producer.flush(120)
    assert (before[0], before[1] + 3) == watch.ask().ends[1]
    stopped = threading.Event()
    watch.last = None
    watch.start(stopped, 0.1)
    wait_until(lambda: watch.last)
    stopped.set()


def test_a_broker_that_is_not_there_is_reported_with_since_when(monkeypatch):
    monkeypatch.setattr(kafka_client, "RESPONSE_WITHIN_S", 0.1)
    monkeypatch.setattr(kafka_client, "ASK_ONCE_S", 0.2)
    watch = TopicWatch(Cluster(name="kafka", bootstrap_servers=f"127.0.0.1:{free_port()}"))
    first, second = watch.ask(), watch.ask()
    assert (None, first.at_ms, first.at_ms) == (second.ends, first.silent_since_ms, second.silent_since_ms)
    assert second.error
    assert second.at_ms > first.at_ms
