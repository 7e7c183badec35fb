from __future__ import annotations

import argparse
from dataclasses import replace

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from jobs.capture import run
from jobs.cli import main
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.replay import Capture


@pytest.fixture
def committed(broker, cluster):
    """A group that has committed once, so that the offsets topic exists."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "captured"})
    from confluent_kafka import TopicPartition

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    if "captured-in" not in admin.list_topics(timeout=120).topics:
        admin.create_topics([NewTopic("captured-in", 1, 1)])["captured-in"].result(120)
    consumer.commit(offsets=[TopicPartition("captured-in", 0, 5)], asynchronous=False)
    consumer.close()
    return Settings(clusters=(cluster,))


def arguments(out):
    return argparse.Namespace(cluster=None, out=out, duration=0.0)


def test_a_captured_folder_is_read_back_as_it_was_recorded(committed, tmp_path):
    assert 0 == run(committed, arguments(tmp_path / "out"))
    capture = Capture(tmp_path / "out")
    records = capture.records()
    assert capture.meta["offsets_topic"]["records"] == len(records)
    assert sum(capture.meta["offsets_topic"]["high_watermarks"].values()) == len(records)
    assert any(b"captured-in" in record.key for record in records)


def test_the_marks_of_the_events_topic_are_among_the_polls(committed, broker, tmp_path):
    (cluster,) = committed.clusters
    marked = replace(cluster, events_topic="captured-events")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("captured-events", 2, 1)])["captured-events"].result(120)
    target = ["--bootstrap-servers", broker.bootstrap_servers, "--topic", "captured-events"]
    assert 0 == main(["mark", "v2.31", "--at", "2026-11-21T12:01:40Z", *target])
    assert 0 == run(Settings(clusters=(marked,)), arguments(tmp_path / "out"))
    (printed,) = [seen for _, seen in Capture(tmp_path / "out").observations() if seen["kind"] == "mark"]
    assert ("v2.31", 1795262500000) == (printed["text"], printed["at"])


def test_a_folder_in_use_is_not_written_over(committed, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="is not empty"):
        run(committed, arguments(tmp_path))
    with pytest.raises(UserError, match=r"mine.txt is a file, not a folder"):
        run(committed, arguments(tmp_path / "mine.txt"))
