"""What happens to the lab's brokers and partitions: scripts like those of the groups, which act on the cluster."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from jobs.lab.cluster import LocalCluster

    Incident = Callable[[LocalCluster, Random, Callable[[str], None]], Iterator[float]]

MOVED_TOPIC = "ledger"
MEGABYTES = 16
THROTTLE = 1 << 20
# Every start of the same cluster fills the topic again, so its size is limited.
KEPT = {"retention.bytes": str(MEGABYTES << 20), "segment.bytes": str(4 << 20)}
CONTROLLER = 1


def coordinator_losses(cluster: LocalCluster, rng: Random, say: Callable[[str], None]) -> Iterator[float]:
    """Repeatedly crash or stop a broker that coordinates a group, and start it again."""
    while True:
        for is_crash in (True, False):
            yield rng.uniform(12, 16)
            coordinators = {cluster.coordinator(group_id): group_id for group_id in cluster.groups()}
            node_id = next(node_id for node_id in sorted(coordinators) if node_id != CONTROLLER)
            broker = cluster.brokers[node_id - 1]
            say(
                f"broker {node_id}, which coordinates {coordinators[node_id]}, is {'killed' if is_crash else 'stopped'}"
            )
            if is_crash:
                broker.kill()
            else:
                broker.stop()
            yield rng.uniform(9, 12)
            say(f"broker {node_id} starts")
            broker.start()


def reassignments(cluster: LocalCluster, rng: Random, say: Callable[[str], None]) -> Iterator[float]:
    """Move partitions of one topic with a throttle, one after another; cancel every third move."""
    ids = [broker.node_id for broker in cluster.brokers]
    placed = [[ids[partition % 3], ids[(partition + 1) % 3]] for partition in range(3)]
    cluster.create([NewTopic(MOVED_TOPIC, len(placed), replica_assignment=placed, config=KEPT)])
    _fill(cluster.bootstrap_servers, len(placed))
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        _throttle(admin, ids)
        while admin.list_partition_reassignments():  # of an earlier run
            yield 1
        replicas = cluster.replicas(MOVED_TOPIC)
        round_no = 0
        while True:
            round_no += 1
            partition = round_no % len(replicas)
            kept, left = replicas[partition]
            target = [next(i for i in ids if i not in replicas[partition]), kept]
            say(f"{MOVED_TOPIC}-{partition} moves from {[kept, left]} to {target}")
            admin.alter_partition_reassignments({TopicPartition(MOVED_TOPIC, partition): target})
            if round_no % 3 == 0:
                yield rng.uniform(3, 6)
                say(f"the move of {MOVED_TOPIC}-{partition} is cancelled")
                admin.alter_partition_reassignments({TopicPartition(MOVED_TOPIC, partition): None})
            else:
                while admin.list_partition_reassignments():
                    yield 1
                say(f"the move of {MOVED_TOPIC}-{partition} is complete")
                replicas[partition] = target
            yield rng.uniform(4, 8)


def _fill(bootstrap_servers: str, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for partition in range(partitions):
        for _ in range(MEGABYTES * 4):
            producer.produce(MOVED_TOPIC, bytes(1 << 18), partition=partition)
        producer.flush(30)


def _throttle(admin: KafkaAdminClient, broker_ids: list[int]) -> None:
    rates = {f"{side}.replication.throttled.rate": str(THROTTLE) for side in ("leader", "follower")}
    brokers = [ConfigResource(ConfigResourceType.BROKER, str(broker), rates) for broker in broker_ids]
    replicas = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
    topic = ConfigResource(ConfigResourceType.TOPIC, MOVED_TOPIC, replicas)
    admin.alter_configs([*brokers, topic], raise_on_unknown=False)
