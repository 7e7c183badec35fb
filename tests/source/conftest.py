"""Topics on the real broker, filled with records of the offsets topic's format."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from jobs.config.clusters import Cluster
from jobs.kafka import topic_streams
from jobs.kafka.kafka_client import topic_ends
from testing.waiting import wait_until

_numbers = itertools.count()


class Topic:
    """A topic for one test; `write` returns when the broker has all records."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers, self.name = servers, name
        self.admin = AdminClient({"bootstrap.servers": servers})
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "max.in.flight": 1})

    def create(self, partitions: int = 2) -> Topic:
        self.admin.create_topics([NewTopic(self.name, partitions, 1)])[self.name].result(120)
        # The controller has responded; a broker learns of the topic a little later.
        wait_until(lambda: topic_ends(self.admin, self.name))
        return self

    def delete(self) -> None:
        self.admin.delete_topics([self.name])[self.name].result(120)

    def write(self, records, partition: int = 0) -> None:
        for record in records:
            self._producer.produce(
                self.name, record.value, record.key, partition, timestamp=max(record.timestamp_ms, 1)
            )
        assert self._producer.flush(120) == 0

    def write_in_a_transaction(self, records, partition: int = 0) -> None:
        """Write the records and, after them, a control record."""
        producer = Producer({"bootstrap.servers": self.servers, "transactional.id": self.name})
        producer.init_transactions(120)
        producer.begin_transaction()
        for record in records:
            producer.produce(self.name, record.value, record.key, partition, timestamp=1)
        producer.flush(120)
        written = self.end(partition)
        producer.commit_transaction(120)
        while self.end(partition) == written:
            time.sleep(0.01)  # the marker is written after the call has returned

    def end(self, partition: int = 0) -> int:
        found = topic_ends(self.admin, self.name)
        assert found is not None
        return found.ends[partition][1]


@pytest.fixture
def cluster(broker) -> Cluster:
    return Cluster(name="c", bootstrap_servers=broker.bootstrap_servers, max_offsets_per_trigger=1_000)


@pytest.fixture
def absent_topic(broker) -> Topic:
    return Topic(broker.bootstrap_servers, f"offsets-{next(_numbers)}")


@pytest.fixture
def topic(absent_topic) -> Topic:
    return absent_topic.create()


@pytest.fixture
def stream(cluster, absent_topic):
    """Return a stream that reads the test's topic as if it were `__consumer_offsets`."""
    return replace(topic_streams.offsets(cluster, tasks=2), topic=absent_topic.name)
