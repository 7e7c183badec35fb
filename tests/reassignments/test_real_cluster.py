"""A real throttled reassignment, polled: the tables describe what happened to it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from jobs.kafka.admin_poll import Poller
from jobs.replay import CaptureRecords, Line, bronze_of
from pipelines.reassignments.rows import reassignment_rows
from testing.warehouses.rebuilding import decoded

MB = 1 << 20


@pytest.fixture(scope="module")
def cluster(brokers):
    servers = brokers[0].bootstrap_servers
    admin = KafkaAdminClient(bootstrap_servers=servers)
    yield servers, admin
    admin.close()


def filled(servers: str, topic: str, assignment: list[list[int]]) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, len(assignment), replica_assignment=assignment)])[topic].result(120)
    producer = Producer({"bootstrap.servers": servers})
    for partition in range(len(assignment)):
        for _ in range(24):
            producer.produce(topic, bytes(MB // 8), partition=partition)
    assert 0 == producer.flush(120)


def throttle(admin: KafkaAdminClient, topic: str, rate: int) -> None:
    rates = dict.fromkeys(("leader.replication.throttled.rate", "follower.replication.throttled.rate"), str(rate))
    listed = dict.fromkeys(("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"), "*")
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.BROKER, str(b), rates) for b in (1, 2, 3)], raise_on_unknown=False
    )
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, listed)], raise_on_unknown=False)


def test_a_throttled_reassignment_and_a_cancelled_one_are_reported_as_they_were(cluster, brokers) -> None:
    servers, admin = cluster
    filled(servers, "moved", [[1, 2], [1, 2], [1, 2]])
    # 3 MB take a minute, until the throttle is raised: even a slow machine polls again before they have arrived.
    throttle(admin, "moved", MB // 20)
    poller = Poller({"bootstrap.servers": servers})
    seen = poller.poll()
    assert not poller.is_moving
    wanted = {
        TopicPartition("moved", 0): [3, 2],
        TopicPartition("moved", 1): [2, 3],
        TopicPartition("moved", 2): [2, 1],
    }
    submitted = time.time() * 1000
    admin.alter_partition_reassignments(wanted)
    seen += poller.poll()
    then_polled = time.time() * 1000
    for _ in range(5):
        assert poller.is_moving
        time.sleep(0.5)
        seen += poller.poll()
    assert poller.is_moving
    admin.alter_partition_reassignments({TopicPartition("moved", 1): None})
    seen += poller.poll()
    throttle(admin, "moved", 100 * MB)
    deadline = time.monotonic() + 120
    while poller.is_moving:
        assert time.monotonic() < deadline
        time.sleep(0.3)
        seen += poller.poll()
    seen += poller.poll()
    assert {} == poller.errors
    poller.close()

    lines = [
        Line(file=f"broker-{b.node_id}.log", number=n, text=text, broker_id=b.node_id)
        for b in brokers
        for n, text in enumerate(Path(b.log_file).read_text().splitlines(), 1)
    ]
    batch = CaptureRecords(lines=lines, observations=list(enumerate(seen, 1)))
    observations, events = decoded(bronze_of(batch, "kafka", {}))
    described = {
        "poll": reassignment_rows("kafka", observations, []),
        "log": reassignment_rows("kafka", [], events),
        "both": reassignment_rows("kafka", observations, events),
    }
    for name, rows in described.items():
        found = {row["partition"]: row for row in rows["reassignments"] if row["topic"] == "moved"}
        assert {0: "completed", 1: "cancelled", 2: "completed"} == {p: r["state"] for p, r in found.items()}, name
        assert {0: [3, 2], 1: [2, 3], 2: [2, 1]} == {p: r["target_replicas"] for p, r in found.items()}, name
        assert {0: [1, 2], 1: [1, 2], 2: [1, 2]} == {p: r["original_replicas"] for p, r in found.items()}, name
        # The new order of partition 2 is in no list, and the broker that describes it may learn of it later.
        listed = found.values() if name != "poll" else [found[0], found[1]]
        # The brokers print their lines when they have the order, which may be after the response.
        assert all(submitted - 100 < r["started_at"] < then_polled + 100 for r in listed), name
        assert all(r["started_at_earliest"] - 100 < then_polled for r in found.values()), name
        assert submitted - 100 < found[2]["started_at"], name
        assert ("bounded" if name == "poll" else "observed") == found[0]["evidence"]
    samples = [row for row in described["poll"]["reassignment_samples"] if row["partition"] == 0]
    shares = [row["progress"] for row in samples]
    assert sorted(shares) == shares
    assert 0 <= shares[0] < 0.9
    assert 3 * MB <= samples[0]["bytes_total"] <= 3.2 * MB
