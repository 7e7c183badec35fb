"""The brokers of one lab, and operations on the whole cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from jobs.lab.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOOPBACK = ("127.0.0.1", 0)


class LocalCluster:
    """Brokers during a `with` block. The first is also the controller, so it must keep running.

    `address` is the host and port of the first one, and the host of the others; 0 is a free port, as theirs are.
    """

    def __init__(
        self, folder: Path, *, brokers: int = 1, overrides: Mapping[str, object], address: tuple[str, int] = LOOPBACK
    ) -> None:
        copies = min(brokers, 3)
        replicated = {"offsets.topic.replication.factor": copies, "share.coordinator.state.topic.replication.factor": 1}
        settings = {**replicated, "share.coordinator.state.topic.min.isr": 1, **overrides}
        host, port = address
        first = Broker(folder, overrides=settings, host=host, port=port)
        self.brokers = [first]
        for node_id in range(2, brokers + 1):
            other = folder / f"broker-{node_id}"
            self.brokers.append(Broker(other, overrides=settings, heap="256m", node_id=node_id, joins=first, host=host))
        self._copies = copies
        self._running = ExitStack()

    @property
    def bootstrap_servers(self) -> str:
        """Return `host:port` of all brokers, for clients."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self.brokers[0])
            with ThreadPoolExecutor(max(1, len(self.brokers) - 1)) as pool:
                list(pool.map(starting.enter_context, self.brokers[1:]))
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def create_topics(self, partitions: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        """Create topics with these numbers of partitions; existing topics are left unchanged."""
        self.create(
            [NewTopic(name, count, self._copies, config=dict(config or {})) for name, count in partitions.items()]
        )

    def create(self, topics: Sequence[NewTopic]) -> None:
        """Create the described topics; existing topics are left unchanged."""
        admin = self._admin()
        for creation in admin.create_topics(list(topics)).values():
            try:
                creation.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise

    def replicas(self, topic: str) -> dict[int, list[int]]:
        """Return the node ids of the replicas of each partition."""
        found = self._admin().list_topics(topic, timeout=15).topics[topic]
        return {number: list(partition.replicas) for number, partition in found.partitions.items()}

    def groups(self) -> list[str]:
        """Return the ids of the consumer groups."""
        admin = self._admin()
        listed = admin.list_consumer_groups().result()
        return sorted(group.group_id for group in listed.valid)

    def coordinator(self, group_id: str) -> int:
        """Return the node id of the group's coordinator."""
        admin = self._admin()
        described = admin.describe_consumer_groups([group_id])[group_id].result()
        return int(described.coordinator.id)

    def _admin(self) -> AdminClient:
        """Return a client. The caller must keep a reference to it until its results arrive."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
