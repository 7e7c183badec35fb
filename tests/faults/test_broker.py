"""The broker fails, or the log is replaced by another: the tables are the same, or coverage declares a gap."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from deltalake import DeltaTable

from jobs.config.clusters import Cluster
from jobs.kafka.source_position import RECREATED
from jobs.lab.broker import Broker
from jobs.tables.paths import table_path
from schemas.bronze import COORDINATOR_RECORDS
from schemas.records import OFFSETS_TOPIC
from testing.waiting import wait_until
from tests.faults.matrix import Trial
from tests.faults.points import INGEST, is_open, killed
from tests.faults.process import Job, finished
from tests.faults.tables import content, difference, spans
from tests.jobs.conftest import CLUSTER, record

pytestmark = pytest.mark.faults


@pytest.fixture
def failing(tmp_path):
    """A broker for one trial, which holds the recorded history and deletes expired records as soon as it may."""
    overrides = {"log.cleaner.enable": "false", "log.retention.ms": -1, "log.retention.check.interval.ms": 200}
    with Broker(tmp_path / "broker", overrides=overrides | {"log.segment.delete.delay.ms": 0}) as broker:
        record(cluster_of(broker))
        yield broker


def cluster_of(broker: Broker) -> Cluster:
    return Cluster(name=CLUSTER, bootstrap_servers=broker.bootstrap_servers, max_offsets_per_trigger=4_000)


def test_a_broker_that_crashes_within_a_batch_changes_no_row(matrix, warehouse, failing, undisturbed, number) -> None:
    trial, cluster = matrix("broker killed within a batch", Trial()), cluster_of(failing)
    job = Job("ingest", warehouse, cluster)
    there = job.until(lambda: is_open(warehouse))
    failing.kill()
    trial.is_hit = there and is_open(warehouse)
    failing.start()
    job.end()
    trial.seconds = finished("ingest", warehouse, cluster)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical


def test_a_broker_that_is_down_is_named_and_nothing_is_lost(matrix, warehouse, failing, undisturbed, number) -> None:
    trial, cluster = matrix("broker down at the start", Trial()), cluster_of(failing)
    killed("ingest", warehouse, cluster, INGEST["offset_commits written"])
    failing.stop()
    job = Job("ingest", warehouse, cluster)
    trial.is_hit = 2 == job.end()
    assert f"No Kafka broker answers at {cluster.bootstrap_servers}" in job.tail()
    failing.start()
    trial.seconds = finished("ingest", warehouse, cluster)
    trial.found = difference(undisturbed, content(warehouse))
    assert trial.found.is_identical


def test_a_log_that_begins_after_our_position_leaves_a_declared_gap(
    matrix, warehouse, failing, undisturbed, number
) -> None:
    trial, cluster = matrix("log start moved past our position", Trial()), cluster_of(failing)
    killed("ingest", warehouse, cluster, INGEST["commits file written"])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    expire(failing, admin)
    trial.is_hit = True
    trial.seconds = finished("ingest", warehouse, cluster)
    covered = [span for span in spans(warehouse) if span["source"] == OFFSETS_TOPIC]
    gaps = sum(span["to_offset"] - span["from_offset"] for span in covered if span["is_gap"])
    trial.declared = gaps
    trial.found = difference(undisturbed, content(warehouse))
    assert gaps > 0
    assert 11_890 == gaps + sum(span["records"] for span in covered if not span["is_gap"]), "each read or declared"
    assert 0 == trial.found.duplicated


def expire(broker: Broker, admin: AdminClient) -> None:
    """Make everything in the offsets topic expire, because it is older than a millisecond."""
    set_to = {"cleanup.policy": "delete", "retention.ms": "1"}
    changes = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in set_to.items()]
    topic = ConfigResource(ResourceType.TOPIC, OFFSETS_TOPIC, incremental_configs=changes)
    for done in admin.incremental_alter_configs([topic]).values():
        done.result(120)
    data = broker.directory / "data"
    wait_until(lambda: not any(f.stat().st_size for f in data.glob(f"{OFFSETS_TOPIC}-*/*.log")))


def test_a_recreated_topic_is_read_whole_in_a_new_epoch(matrix, warehouse, failing, undisturbed, number) -> None:
    trial, cluster, began = matrix("topic recreated", Trial()), cluster_of(failing), datetime.now(UTC)
    killed("ingest", warehouse, cluster, INGEST["commits file written"])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for done in admin.delete_topics([OFFSETS_TOPIC, cluster.events_topic]).values():
        done.result(120)
    wait_until(lambda: not {OFFSETS_TOPIC, cluster.events_topic} & admin.list_topics(timeout=120).topics.keys())
    record(cluster)
    trial.is_hit = True
    trial.seconds = finished("ingest", warehouse, cluster)
    gaps = [span for span in spans(warehouse) if span["gap_reason"] == RECREATED and span["source"] == OFFSETS_TOPIC]
    trial.declared = len(gaps)
    table = DeltaTable(table_path(warehouse, COORDINATOR_RECORDS)).to_pyarrow_table().to_pylist()
    again = [r for r in table if r["log_epoch"] == 1]
    # The broker writes a record itself if it loads a group before the last record of its members arrives.
    recorded = [r for r in again if r["record_at"] < began]
    assert gaps
    assert len(again) == len({(r["source_partition"], r["source_offset"]) for r in again})
    assert len(recorded) == sum("'GroupMetadata'" in entry for entry in undisturbed.bronze)


def test_an_open_transaction_hides_nothing_behind_it(matrix, warehouse, failing, number) -> None:
    trial, cluster = matrix("open transaction at the end", Trial(is_hit=True)), cluster_of(failing)
    finished("ingest", warehouse, cluster)
    before = content(warehouse)
    own = {"bootstrap.servers": cluster.bootstrap_servers}
    group = Consumer(own | {"group.id": "pending"})
    pending = Producer(own | {"transactional.id": "pending"})
    pending.init_transactions(120)
    pending.begin_transaction()
    first, second = (TopicPartition(cluster.events_topic, partition, 7) for partition in range(2))
    pending.send_offsets_to_transaction([first], group.consumer_group_metadata(), 30)
    group.commit(offsets=[second], asynchronous=False)
    trial.seconds = finished("ingest", warehouse, cluster)
    trial.found = difference(before, content(warehouse))
    # Both were read: a commit that may still be rolled back, and the one after it in the same partition.
    assert (0, 2) == (trial.found.lost, trial.found.duplicated)
    pending.abort_transaction(120)
    group.close()
