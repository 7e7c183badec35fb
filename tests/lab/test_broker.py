"""The embedded broker: one start serves all tests, because a start is expensive."""

from __future__ import annotations

import re
import socket

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from jobs.config.errors import UserError
from jobs.lab.broker import Broker


def tuple_of(address: str) -> tuple[str, int]:
    host, port = address.split(":")
    return host, int(port)


def end_offset(broker: Broker) -> int:
    where = TopicPartition("kept", 0)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    return admin.list_offsets({where: OffsetSpec.latest()})[where].result().offset


def test_data_address_and_log_stay_through_a_restart_and_a_crash(tmp_path):
    with Broker(tmp_path, overrides={"broker.session.timeout.ms": 2000}) as broker:
        address = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result()
        producer = Producer({"bootstrap.servers": address})
        producer.produce("kept", b"one")
        assert 0 == producer.flush(120)
        broker.stop()
        broker.start()
        assert 1 == end_offset(broker)
        broker.kill()
        broker.start()
        assert (address, 1) == (broker.bootstrap_servers, end_offset(broker))
    lines = broker.log_file.read_text().splitlines()
    starts = [line for line in lines if re.fullmatch(r"\[[-\d]+ [:\d]+,\d{3}\] INFO .*Kafka Server started.*\)", line)]
    assert 3 == len(starts)


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "data").touch()
    with pytest.raises(UserError, match=re.escape(f"cannot be set up in {tmp_path}: ")):
        Broker(tmp_path).start()


def test_a_property_kafka_refuses_is_reported_in_its_words(tmp_path):
    with pytest.raises(UserError, match=r"Invalid value 0 for configuration num\.io\.threads"):
        Broker(tmp_path, overrides={"num.io.threads": 0}).start()


def test_a_broker_that_ends_while_starting_points_to_its_log(tmp_path):
    broker = Broker(tmp_path)
    with socket.create_server(tuple_of(broker.bootstrap_servers)), pytest.raises(UserError, match=r"server\.log"):
        broker.start()
