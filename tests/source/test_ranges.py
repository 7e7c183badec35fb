"""Ranges read from a real broker, without Spark."""

from __future__ import annotations

import time
from concurrent.futures import Future
from functools import partial

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ListOffsetsResultInfo

from jobs.kafka.kafka_client import FIXED, reader_options, topic_ends
from jobs.kafka.kafka_read import Range, RangeReader
from tests.source.offset_records import commit

WAITS_S = 120.0
"""Seconds after which a waiting reader asks why no record arrives; a reader that need not wait ends long before, even
on a slow machine."""


@pytest.fixture(params=[False, True], ids=["objects", "flat"])
def is_flat(request) -> bool:
    return request.param


@pytest.fixture
def read(is_flat):
    return partial(records, is_flat)


def records(is_flat, cluster, topic, *ranges):
    """Return (partition, offset) of every record, and the gaps."""
    wanted = [Range(partition=p, log_epoch=0, start=a, end=b) for p, a, b in ranges]
    reader = RangeReader(cluster.client(), topic.name, wanted, is_flat=is_flat)
    places = [place for piece in reader for place in zip(piece.partition.tolist(), piece.offset.tolist(), strict=True)]
    return places, [(g.partition, g.from_offset, g.to_offset, g.gap_reason) for g in reader.gaps]


def test_a_range_gives_its_records_once_and_nothing_beyond_it(read, cluster, topic):
    topic.write(commit(n) for n in range(100))
    assert ([(0, n) for n in range(20, 70)], []) == read(cluster, topic, (0, 20, 70))


def test_neighbouring_ranges_meet_without_a_hole_or_an_overlap(read, cluster, topic):
    topic.write(commit(n) for n in range(50))
    halves = read(cluster, topic, (0, 0, 17))[0] + read(cluster, topic, (0, 17, 50))[0]
    assert [(0, n) for n in range(50)] == halves


def test_one_reader_reads_several_partitions(read, cluster, topic):
    for partition in range(2):
        topic.write((commit(n) for n in range(30)), partition)
    places, gaps = read(cluster, topic, (0, 5, 30), (1, 0, 12))
    assert ([*((0, n) for n in range(5, 30)), *((1, n) for n in range(12))], []) == (sorted(places), gaps)


@pytest.mark.parametrize("is_more_behind", [False, True])
def test_a_range_that_ends_in_a_control_record_ends_without_waiting(read, cluster, topic, monkeypatch, is_more_behind):
    monkeypatch.setattr("jobs.kafka.kafka_read.DOUBT_AFTER_S", WAITS_S)
    topic.write_in_a_transaction(commit(n) for n in range(3))
    if is_more_behind:
        topic.write([commit(9)])
    began = time.monotonic()
    assert ([(0, 0), (0, 1), (0, 2)], []) == read(cluster, topic, (0, 0, 4))
    assert time.monotonic() - began < WAITS_S


def test_records_of_an_open_transaction_are_read(read, cluster, topic):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topic.servers, "transactional.id": "open"})
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(topic.name, b"v", b"k", 0)
    producer.flush(120)
    assert [(0, 0)] == read(cluster, topic, (0, 0, 1))[0]
    producer.abort_transaction(120)


def test_neither_an_open_nor_an_aborted_transaction_hides_what_was_written_behind_it(read, cluster, topic):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": topic.servers, "transactional.id": "hanging"})
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(topic.name, b"v", b"k", 0)
    producer.flush(120)
    topic.write([commit(1)])
    assert [(0, 0), (0, 1)] == read(cluster, topic, (0, 0, 2))[0]
    producer.abort_transaction(120)
    topic.write([commit(2)])
    places, gaps = read(cluster, topic, (0, 0, topic.end()))
    # Including the aborted record, because a client cannot see that it was aborted. The marker may come before or after
    # the last one.
    assert ([(0, 0), (0, 1)], 3, []) == (places[:2], len(places), gaps)


@pytest.mark.parametrize(("end", "expected"), [(40, range(25, 40)), (20, ())])
def test_what_was_deleted_before_it_was_read_is_a_gap(read, cluster, topic, end, expected):
    topic.write(commit(n) for n in range(40))
    (done,) = topic.admin.delete_records([TopicPartition(topic.name, 0, 25)]).values()
    done.result(120)
    gap = (0, 0, min(25, end), "deleted from the log before it was read")
    assert ([(0, n) for n in expected], [gap]) == read(cluster, topic, (0, 0, end))


def test_a_planned_range_that_the_log_no_longer_reaches_is_a_gap(read, cluster, topic, monkeypatch):
    monkeypatch.setattr("jobs.kafka.kafka_read.DOUBT_AFTER_S", 0.5)
    topic.write(commit(n) for n in range(5))
    places, gaps = read(cluster, topic, (0, 0, 9))
    assert [(0, n) for n in range(5)] == places
    assert [(0, 5, 9, "the log ends before it: the topic was recreated or truncated")] == gaps


def test_a_topic_that_does_not_exist_has_no_ends_and_is_not_made(absent_topic):
    assert None is topic_ends(absent_topic.admin, absent_topic.name)
    assert absent_topic.name not in absent_topic.admin.list_topics(timeout=120).topics


def test_a_topics_ends_are_its_first_and_next_offsets(topic):
    topic.write([commit(0), commit(1)])
    found = topic_ends(topic.admin, topic.name)
    assert found is not None
    assert {0: (0, 2), 1: (0, 0)} == found.ends
    assert found.topic_id


def test_the_users_security_options_reach_the_client_and_what_must_hold_is_not_theirs():
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.password": "s",
        "ssl.ca.location": "/ca.pem",
        "fetch.wait.max.ms": "7",
        "isolation.level": "read_committed",
        "group.id": "theirs",
        "enable.auto.commit": "true",
    }
    found = reader_options(given)
    assert FIXED.items() <= found.items()
    theirs = given.keys() - FIXED.keys()
    assert {k: given[k] for k in theirs} == {k: found[k] for k in theirs}


def test_reading_leaves_no_group_behind(read, cluster, topic):
    topic.write([commit(0)])
    read(cluster, topic, (0, 0, 1))
    groups = {g.group_id for g in topic.admin.list_consumer_groups().result().valid}
    assert "regroup-reader" not in groups


NO_LEADER = "no error, and no offset"


def answered(result) -> Future:
    future: Future = Future()
    future.set_result(result)
    return future


class MovedLeader:
    """A real client whose first responses about offsets are those seen while brokers were lost."""

    def __init__(self, admin, errors) -> None:
        self._admin = admin
        self._errors = list(errors)

    def __getattr__(self, name: str):
        return getattr(self._admin, name)

    def list_offsets(self, wanted, **kwargs):
        error = self._errors.pop(0) if self._errors else None
        if error == NO_LEADER:
            return dict.fromkeys(wanted, answered(ListOffsetsResultInfo(-1001, -1, -1)))
        if error is not None:
            raise KafkaException(KafkaError(error))
        return self._admin.list_offsets(wanted, **kwargs)


def test_a_leader_that_just_changed_is_asked_again(topic):
    moved = MovedLeader(topic.admin, [KafkaError.NOT_LEADER_FOR_PARTITION, NO_LEADER, KafkaError.FENCED_LEADER_EPOCH])
    assert topic_ends(topic.admin, topic.name) == topic_ends(moved, topic.name)
    with pytest.raises(KafkaException):
        topic_ends(MovedLeader(topic.admin, [KafkaError.TOPIC_AUTHORIZATION_FAILED]), topic.name)
