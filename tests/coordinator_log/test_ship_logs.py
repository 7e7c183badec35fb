"""`regroup ship-logs` against a real broker, with only the permission to write to one topic."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from jobs import ship_logs
from jobs.cli import main
from jobs.config.clusters import Cluster
from jobs.config.errors import UserError
from jobs.config.settings import Settings
from jobs.kafka import events_topic
from pipelines.log_envelopes import LogLine, unwrap
from tests.coordinator_log.lines import NEW, line

LINES = [line(f"{NEW}Stabilized group orders generation {k} with 3 members.") for k in range(1, 4)]


@pytest.fixture
def ship(servers, tmp_path, monkeypatch):
    """Run the command once over some files."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(topic: str, *files: Path, broker_id: int | None = None) -> int:
        cluster = Cluster(name="c", bootstrap_servers=servers, events_topic=topic)
        args = argparse.Namespace(cluster=None, topic=None, files=list(files), follow=False, broker_id=broker_id)
        return ship_logs.run(Settings(clusters=(cluster,)), args)

    return run


def received(servers: str, topic: str, count: int) -> list[LogLine]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[LogLine] = []
        until = time.monotonic() + 300
        while len(found) < count and time.monotonic() < until:
            for message in consumer.consume(100, 0.2):
                assert message.error() is None, message.error()
                found += unwrap(message.value())
        return found + [each for message in consumer.consume(1, 0.3) for each in unwrap(message.value())]
    finally:
        consumer.close()


def test_each_line_arrives_once_with_write_alone(servers, ship, allow_reading, tmp_path):
    path = tmp_path / "server.log"
    path.write_text("".join(f"{text}\n" for text in LINES[:2]) + LINES[2])
    assert 0 == ship("events", path, broker_id=3)
    assert 0 == ship("events", path, broker_id=3)
    path.write_text("".join(f"{text}\n" for text in LINES))
    assert 0 == ship("events", path, broker_id=3)
    allow_reading("events")
    assert [LogLine(text, 3) for text in LINES] == received(servers, "events", 3)


def test_following_sends_what_is_added_and_goes_on_after_a_kill(servers, tmp_path):
    path = tmp_path / "server.log"
    path.write_text(f"{LINES[0]}\n")
    command = [sys.executable, "-m", "jobs.cli", "ship-logs", str(path), "--follow", "--topic", "followed"]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    found: list[str] = []
    for number, how in enumerate((signal.SIGKILL, signal.SIGINT)):
        process = subprocess.Popen([*command, "--bootstrap-servers", servers], env=environment)
        try:
            assert LINES[: number + 1] == [each.line for each in received(servers, "followed", number + 1)]
            with path.open("a") as stream:
                stream.write(f"{LINES[number + 1]}\n")
            found = [each.line for each in received(servers, "followed", number + 2)]
        finally:
            process.send_signal(how)
            process.wait(120)
        # Nothing is sent before the previous line is acknowledged, but the position of that line may not have been
        # stored.
        assert LINES[: number + 2] == list(dict.fromkeys(found))
    assert 130 == process.returncode


def test_a_missing_permission_is_named(ship, tmp_path):
    (tmp_path / "server.log").write_text("one\n")
    with pytest.raises(UserError, match="No permission to write to the topic refused: grant WRITE on it"):
        ship("refused", tmp_path / "server.log")


def test_a_mark_needs_write_alone_and_names_it_where_it_is_missing(servers, capsys):
    assert 0 == main(["mark", "v2.31", "--bootstrap-servers", servers, "--topic", "marks"])
    assert 2 == main(["mark", "v2.31", "--bootstrap-servers", servers, "--topic", "refused"])
    printed = capsys.readouterr().err
    assert "regroup mark: No permission to write to the topic refused: grant WRITE on it.\n" == printed


def test_a_missing_topic_is_named(ship, tmp_path, monkeypatch):
    monkeypatch.setattr("jobs.kafka.events_topic.KNOWN_WITHIN_S", 1.0)
    (tmp_path / "server.log").write_text("one\n")
    with pytest.raises(UserError, match=r"There is no topic absent at 127\.0\.0\.1:\d+: create it"):
        ship("absent", tmp_path / "server.log")


def test_a_missing_file_is_named(ship, tmp_path):
    (tmp_path / "here.log").touch()
    with pytest.raises(UserError, match=r"There is no log file .*absent\.log"):
        ship("other", tmp_path / "here.log", tmp_path / "absent.log")


def test_a_broken_saved_position_is_named(ship, tmp_path):
    (tmp_path / "server.log").write_text("one\n")
    assert 0 == ship("other", tmp_path / "server.log")
    [saved] = (tmp_path / "state").rglob("*.json")
    saved.write_text("{")
    with pytest.raises(UserError, match=r"The saved position .*\.json cannot be read .*: remove it"):
        ship("other", tmp_path / "server.log")


def test_an_option_that_librdkafka_does_not_know_is_named(tmp_path):
    cluster = Cluster(name="c", bootstrap_servers="127.0.0.1:1", kafka={"no.such.option": "1"})
    with pytest.raises(
        UserError, match=r'kafka settings of the cluster c .*No such configuration property: "no\.such\.option"'
    ):
        ship_logs.Shipper(cluster, "events", [tmp_path / "server.log"], state=tmp_path)


def test_a_broker_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(events_topic, "RESPONSE_WITHIN_S", 0.5)
    (tmp_path / "server.log").write_text("one\n")
    cluster = Cluster(name="c", bootstrap_servers="127.0.0.1:1")
    with pytest.raises(UserError, match=r"Kafka at 127\.0\.0\.1:1 cannot be written to"):
        ship_logs.Shipper(cluster, "events", [tmp_path / "server.log"], state=tmp_path)
