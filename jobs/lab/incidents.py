"""What happens to the lab's brokers and partitions: scripts like those of the groups, which act on the cluster."""

from __future__ import annotations

from collections import Counter
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
OFFSETS_TOPIC = "__consumer_offsets"
HANG_S = 30.0
"""The time at which a member hangs, in a scenario whose coordinator then fails."""


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


def coordinator_loss(cluster: LocalCluster, rng: Random, say: Callable[[str], None]) -> Iterator[float]:
    """Crash the broker that coordinates most groups, as soon as `HANG_S` has passed, and start it again."""
    yield HANG_S + rng.uniform(1, 2)
    coordinated = Counter(cluster.coordinator(group_id) for group_id in cluster.groups())
    del coordinated[CONTROLLER]
    node_id = max(sorted(coordinated), key=coordinated.__getitem__)
    say(f"broker {node_id}, which coordinates {coordinated[node_id]} of the groups, is killed")
    cluster.brokers[node_id - 1].kill()
    yield rng.uniform(9, 12)
    say(f"broker {node_id} starts")
    cluster.brokers[node_id - 1].start()


def sick_offsets_partitions(cluster: LocalCluster, rng: Random, say: Callable[[str], None]) -> Iterator[float]:
    """Make every replica of the offsets topic necessary, leave one partition a single replica, and crash its broker.

    That partition then has no leader. The others have a leader and one replica fewer than `min.insync.replicas`, so
    nothing can be appended to them.
    """
    yield rng.uniform(8, 10)
    replicas = cluster.replicas(OFFSETS_TOPIC)
    single = max(replicas)
    node_id = next(node for node in replicas[single] if node != CONTROLLER)
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)) as admin:
        admin.alter_partition_reassignments({TopicPartition(OFFSETS_TOPIC, single): [node_id]})
        needed = {"min.insync.replicas": str(len(cluster.brokers))}
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, OFFSETS_TOPIC, needed)])
    yield rng.uniform(8, 12)
    while True:
        say(f"broker {node_id} is killed: {OFFSETS_TOPIC}-{single} has no leader, the others lack a replica in sync")
        cluster.brokers[node_id - 1].kill()
        yield rng.uniform(100, 110)
        say(f"broker {node_id} starts")
        cluster.brokers[node_id - 1].start()
        yield rng.uniform(60, 70)


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
