"""Real consumers push to a real broker, whose plugin sends it on: every row is what the client measured."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import deltalake
import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from jobs.cli import main
from jobs.client_metrics.receiver import MetricsReceiver
from jobs.config.clusters import Cluster
from jobs.ingest import Writer
from jobs.kafka.events_topic import EventsTopic
from jobs.kafka.topic_streams import events
from jobs.lab.broker import Broker
from jobs.lab.java_programs import compiled
from jobs.processes.ports import free_ports
from jobs.setup.jars import jars
from jobs.setup.java import java
from jobs.spark.streams import Streams
from jobs.tables.create_tables import create_tables
from jobs.tables.paths import table_path
from schemas.bronze import BRONZE, CLIENT_METRICS, QUARANTINE
from testing.client_metrics.broker import broker, subscribe
from testing.waiting import wait_until
from tests.client_metrics.test_messages import without_place

TOKEN = "a-token-of-brokers"
TOPIC, GROUP, PARTITIONS = "regroup-events", "billing", 4
WITHIN_S = 120


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[tuple[Broker, int]]:
    """A broker with the plugin and two topics, and the port to which it sends what its clients push."""
    folder = tmp_path_factory.mktemp("pushing")
    (folder / "token").write_text(TOKEN)
    (port,) = free_ports(1)
    with broker(folder, port=port, token_file=folder / "token") as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic("orders", PARTITIONS, 1)]).values():
            future.result(WITHIN_S)
        subscribe(kafka)
        yield kafka, port


@pytest.fixture
def sent(running) -> Iterator[list]:
    """Everything that the port sends to the events topic while the test runs."""
    kafka, port = running
    topic, found = EventsTopic(Cluster(name="kafka", bootstrap_servers=kafka.bootstrap_servers), TOPIC), []

    def deliver(messages) -> None:
        topic.deliver(messages)
        found.extend(messages)

    receiver = MetricsReceiver(deliver, host="127.0.0.1", port=port, token=TOKEN)
    thread = threading.Thread(target=receiver.run)
    thread.start()
    yield found
    receiver.stop()
    thread.join()


@contextmanager
def java_consumer(kafka: Broker, *settings: str) -> Iterator[None]:
    """The plain consumer of the lab, a process of its own that leaves its group at the end."""
    classpath = os.pathsep.join(map(str, [compiled("PlainConsumer", ("kafka",)), *jars("kafka")]))
    known = [f"bootstrap.servers={kafka.bootstrap_servers}", f"group.id={GROUP}"]
    command = [str(java()), "-cp", classpath, "PlainConsumer", "orders", *known, *settings]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, text=True) as process:
        try:
            yield
        finally:
            print("leave", file=process.stdin, flush=True)


def of_client(sent: list, client_id: str) -> int:
    return sum(client_id in str(each) for each in list(sent))


def test_each_consumer_s_own_figures_are_rows_with_its_member_id(running, sent, spark, tmp_path) -> None:
    kafka, _ = running
    options = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": GROUP, "client.id": "rd-0"}
    with java_consumer(kafka, "client.id=java-0", "group.instance.id=j0"), closing(Consumer(options)) as consumer:
        consumer.subscribe(["orders"])

        def both_pushed(times: int) -> bool:
            consumer.poll(0.1)
            is_shared = len(consumer.assignment()) == PARTITIONS / 2
            return is_shared and min(of_client(sent, "java-0"), of_client(sent, "rd-0")) > times

        wait_until(lambda: both_pushed(6), WITHIN_S)
        # Twice more, because the last of these figures may be from before both shared the topic.
        so_far = max(of_client(sent, "java-0"), of_client(sent, "rd-0"))
        wait_until(lambda: both_pushed(so_far + 1), WITHIN_S)
        known = {each.member_id: each.client_id for each in members(kafka)}
    found = tables(spark, tmp_path, kafka)
    assert {row["member_id"] for row in found} - {None} == known.keys()
    last = {row["client_id"]: row for row in found if row["member_id"] is not None}
    assert known == {row["member_id"]: client for client, row in last.items()}
    java_row, other = last["java-0"], last["rd-0"]
    assert ("apache-kafka-java", "j0") == (java_row["software_name"], java_row["group_instance_id"])
    assert other["software_name"] == "confluent-kafka-python"
    assert all(row["software_version"] for row in found)
    for row in found:
        # One machine has one clock, so the client's times are before that of the message.
        assert row["measured_at"] <= row["received_at"]
    polled = [row for row in found if row["last_poll_at_earliest"] is not None]
    assert polled
    assert all(row["last_poll_at_earliest"] <= row["last_poll_at_latest"] <= row["measured_at"] for row in polled)
    rebalances = [row["rebalances"] for row in found if row["client_id"] == "java-0" and row["rebalances"] is not None]
    assert sum(rebalances) >= 1
    assert sum(row["rebalance_ms"] or 0 for row in found if row["client_id"] == "rd-0") > 0
    assert {row["client_id"] for row in found if row["assigned_partitions"] == PARTITIONS / 2} == {"java-0", "rd-0"}
    again = of_capture(kafka, tmp_path)
    assert [without_place(row) for row in found] == [without_place(row) for row in again]


def members(kafka: Broker) -> list:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    return admin.describe_consumer_groups([GROUP])[GROUP].result(WITHIN_S).members


def tables(spark, folder: Path, kafka: Broker) -> list[dict]:
    """The rows of `client_metrics` in order of time, as `ingest` writes them."""
    cluster = Cluster(name="kafka", bootstrap_servers=kafka.bootstrap_servers, events_topic=TOPIC)
    create_tables(spark, folder, BRONZE)
    writer = Writer(stream=events(cluster, tasks=1), warehouse=folder)
    Streams([partial(writer.start, spark, {"availableNow": True})]).wait()
    return rows_in(folder)


def of_capture(kafka: Broker, folder: Path) -> list[dict]:
    """The rows of `client_metrics` of a capture of this cluster, as `replay` writes them."""
    target = ["--bootstrap-servers", kafka.bootstrap_servers, "--out", str(folder / "capture"), "--duration", "0"]
    assert 0 == main(["capture", *target])
    assert 0 == main(["replay", str(folder / "capture"), "--warehouse", str(folder / "replayed")])
    return rows_in(folder / "replayed")


def rows_in(warehouse: Path) -> list[dict]:
    assert 0 == deltalake.DeltaTable(table_path(warehouse, QUARANTINE)).to_pyarrow_table().num_rows
    found = deltalake.DeltaTable(table_path(warehouse, CLIENT_METRICS)).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: (row["measured_at"], row["client_id"]))


def test_a_broker_goes_on_and_says_so_while_nothing_takes_the_metrics(running) -> None:
    kafka, _ = running
    options = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "alone"}
    with closing(Consumer(options)) as consumer:
        consumer.subscribe(["orders"])

        def is_dropped() -> bool:
            consumer.poll(0.1)
            said = "pushes of clients were dropped since the start" in kafka.log_file.read_text(encoding="utf-8")
            return said and len(consumer.assignment()) == PARTITIONS

        wait_until(is_dropped, WITHIN_S)
