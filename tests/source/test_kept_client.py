"""A process that asks for the ends of a topic before each batch keeps one client, until it fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.config.errors import PassingError
from jobs.kafka import kafka_client, kafka_source, topic_watch
from jobs.kafka.kafka_source import TopicStreamReader


@pytest.fixture
def clients(monkeypatch):
    """The options of the clients that are made, for a process that has none yet."""
    made, admin = [], kafka_source.admin
    monkeypatch.setattr(kafka_client, "_kept", {})
    monkeypatch.setattr(kafka_source, "admin", lambda options: made.append(options) or admin(options))
    return made


def test_all_batches_use_one_client(topic, stream, clients) -> None:
    expected = TopicStreamReader(stream).ends()
    threads = len(list(Path("/proc/self/task").iterdir()))
    assert expected is not None
    for _ in range(20):
        assert expected == TopicStreamReader(stream).ends()
    assert 1 == len(clients)
    assert len(list(Path("/proc/self/task").iterdir())) <= threads + 2


def test_a_client_that_failed_is_not_kept(topic, stream, clients, monkeypatch) -> None:
    monkeypatch.setattr(kafka_client, "RESPONSE_WITHIN_S", 0.5)
    monkeypatch.setattr(kafka_client, "ASK_ONCE_S", 0.2)
    absent = TopicStreamReader(replace(stream, options={"bootstrap.servers": "127.0.0.1:1"}))
    for _ in range(2):
        with pytest.raises(PassingError, match="No Kafka broker answers at"):
            absent.ends()
    assert 2 == len(clients)
    assert TopicStreamReader(stream).ends() is not None


def test_the_watch_of_a_cluster_uses_one_client(cluster, clients, monkeypatch) -> None:
    monkeypatch.setattr(topic_watch, "admin", kafka_source.admin)
    watch = topic_watch.TopicWatch(cluster)
    for _ in range(3):
        assert watch.ask().error == ""
    assert 1 == len(clients)
