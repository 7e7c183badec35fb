"""Reading librdkafka's messages from memory gives the result of confluent-kafka's consumer, or is not used."""

from __future__ import annotations

import ctypes
import logging
from collections import Counter
from random import Random

import numpy as np
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import NewTopic
from hypothesis import given
from hypothesis import strategies as st

from jobs.config.errors import PassingError
from jobs.kafka import kafka_client, kafka_read, librdkafka
from jobs.kafka.arrivals import ObjectReading
from jobs.kafka.kafka_client import topic_ends
from jobs.kafka.kafka_read import Range, RangeReader
from jobs.kafka.native_consumer import FEW, LARGE, FlatReading, copied
from pipelines.decoding.flat_bytes import FlatBytes
from testing.records.samples import golden

SIZES = st.sampled_from([0, 1, 24, 25, 300, LARGE, LARGE + 1])


@given(st.lists(st.none() | SIZES, max_size=4 * FEW), st.randoms())
def test_strings_are_copied_from_any_address(sizes, random) -> None:
    strings = [None if size is None else random.randbytes(size) for size in sizes]
    buffers = [ctypes.create_string_buffer(string or b"", len(string or b"") + 1) for string in strings]
    address = [0 if s is None else ctypes.addressof(b) for s, b in zip(strings, buffers, strict=True)]
    found = copied(np.array(address, np.uint64), np.array([len(string or b"") for string in strings], np.int64))
    assert strings == list(found)


def columns(options, topic, ranges, *, is_flat, records_at_once=700):
    reader = RangeReader(options, topic, ranges, is_flat=is_flat, records_at_once=records_at_once)
    rows: list[tuple] = []
    kinds = set()
    for piece in reader:
        kinds.add(type(piece.key))
        numbers = (each.tolist() for each in (piece.partition, piece.offset, piece.timestamp_ms, piece.log_epoch))
        rows += zip(*numbers, piece.key, piece.value, strict=True)
    assert {FlatBytes if is_flat else list} == kinds
    return sorted(rows), reader.gaps


@pytest.mark.parametrize("time_of", ["CreateTime", "LogAppendTime"])
def test_both_read_the_same_of_a_topic(topic, time_of) -> None:
    name, random = f"{topic.name}-{time_of}", Random(5)
    config = {"message.timestamp.type": time_of, "max.message.bytes": "5000000"}
    topic.admin.create_topics([NewTopic(name, 3, 1, config=config)])[name].result(120)
    strings = [None, b"", b"\x00", *(random.randbytes(size) for size in (1, 24, 24, 24, 80, 5_000, 70_000))]
    given_ones = [(random.choice(strings), random.choice(strings)) for _ in range(2_000)]
    given_ones += [*golden(), (b"large", random.randbytes(3_000_000))]
    options = {"bootstrap.servers": topic.servers, "message.max.bytes": 5_000_000, "transactional.id": name}
    producer = Producer(options | {"compression.type": "zstd"})
    producer.init_transactions(120)
    for at in range(0, len(given_ones), 300):
        producer.begin_transaction()
        for number, (key, value) in enumerate(given_ones[at : at + 300], at):
            headers = [("h", b"x")] if number % 7 == 0 else []
            producer.produce(name, value, key, number % 3, timestamp=1_000 + number, headers=headers)
        assert producer.flush(120) == 0
        (producer.abort_transaction if at % 600 else producer.commit_transaction)(20)
    ends = topic_ends(topic.admin, name)
    assert ends is not None
    ranges = [Range(partition=p, log_epoch=p, start=p, end=high) for p, (_, high) in ends.ends.items()]
    where = {"bootstrap.servers": topic.servers}
    expected, gaps = columns(where, name, ranges, is_flat=False)
    assert (expected, gaps) == columns(where, name, ranges, is_flat=True)
    # Without the first record of partition 1 and the first two of partition 2; control records leave no record.
    kept = Counter(given_ones) - Counter([given_ones[1], given_ones[2], given_ones[5]])
    assert kept == Counter((key, value) for *_, key, value in expected)
    times = {row[2] for row in expected}
    assert (min(times) >= 1_000 + 3 - 3 and max(times) < 10_000) == (time_of == "CreateTime")


def test_both_hear_the_same_events(topic) -> None:
    topic.write([])
    library = librdkafka.library()
    assert library is not None
    where = {"bootstrap.servers": topic.servers}
    heard = []
    for reading in (ObjectReading(where), FlatReading(library, where)):
        reading.assign(topic.name, {0: 0, 1: 70})
        notes = {}
        while len(notes) < 2:
            notes |= {note.partition: note for note in reading.take(100, 0.5).notes}
        reading.remove(topic.name, [1])
        reading.unassign()
        heard.append(notes)
    assert heard[0] == heard[1]
    codes = {partition: note.code for partition, note in heard[0].items()}
    assert codes == {0: KafkaError._PARTITION_EOF, 1: KafkaError._AUTO_OFFSET_RESET}


@pytest.mark.parametrize("is_flat", [False, True])
def test_a_broker_that_sends_nothing_is_one_sentence(is_flat, monkeypatch) -> None:
    monkeypatch.setattr(kafka_read, "DOUBT_AFTER_S", 0.2)
    monkeypatch.setattr(kafka_read, "GIVE_UP_AFTER_S", 0.4)
    monkeypatch.setattr(kafka_read, "RESPONSE_WITHIN_S", 0.2)
    reader = RangeReader(
        {"bootstrap.servers": "127.0.0.1:1"}, "t", [Range(partition=0, log_epoch=0, start=0, end=1)], is_flat=is_flat
    )
    with pytest.raises(PassingError, match=r"^Kafka sent nothing of t for 0 s \(.*Local: .*\): check the brokers\."):
        list(reader)


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(kafka_client, "_kept", {})
    librdkafka.library.cache_clear()
    yield
    librdkafka.library.cache_clear()


def other_layout(monkeypatch) -> None:
    fields = {"names": librdkafka.MESSAGE.names, "formats": [librdkafka.MESSAGE[n] for n in librdkafka.MESSAGE.names]}
    moved = [offset + 8 for _, offset in librdkafka.MESSAGE.fields.values()]
    monkeypatch.setattr(librdkafka, "MESSAGE", np.dtype(fields | {"offsets": moved, "itemsize": 120}))


def other_library(monkeypatch) -> None:
    monkeypatch.setattr(librdkafka.cimpl, "__file__", None)  # Python itself, which has no such function


def no_library(monkeypatch) -> None:
    monkeypatch.setattr(librdkafka.cimpl, "__file__", "/nowhere.so")


def other_version(monkeypatch) -> None:
    monkeypatch.setattr(librdkafka, "libversion", lambda: ("3.0.0", 0x030000FF))


@pytest.mark.parametrize("change", [other_layout, other_library, no_library, other_version])
@pytest.mark.usefixtures("fresh")
def test_what_is_not_as_expected_is_read_with_objects(change, topic, monkeypatch, caplog) -> None:
    change(monkeypatch)
    topic.write(golden_records())
    options, wanted = {"bootstrap.servers": topic.servers}, [Range(partition=0, log_epoch=0, start=0, end=5)]
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            (piece,) = RangeReader(options, topic.name, wanted, is_flat=True)
            assert list is type(piece.key)
            assert [0, 1, 2, 3, 4] == piece.offset.tolist()
    (line,) = caplog.messages
    assert line.startswith("reading with confluent-kafka's own consumer, which is slower: librdkafka ")
    assert "\n" not in line


def golden_records():
    from pipelines.decoding.source_record import SourceRecord

    return [SourceRecord(0, at, 1_000, *record) for at, record in enumerate(golden()[:5])]


@pytest.mark.usefixtures("fresh")
def test_an_option_that_only_confluent_kafka_knows_is_read_with_objects(topic, caplog) -> None:
    topic.write(golden_records())
    options = {"bootstrap.servers": topic.servers, "on_commit": lambda *_: None}
    with caplog.at_level(logging.WARNING):
        (piece,) = RangeReader(options, topic.name, [Range(partition=0, log_epoch=0, start=0, end=5)], is_flat=True)
    assert list is type(piece.key)
    (line,) = caplog.messages
    assert 'No such configuration property: "on_commit"' in line
