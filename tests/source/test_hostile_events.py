"""A writer to the events topic cannot stop ingest, and cannot send for sources that the settings bind otherwise."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import partial

import deltalake
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from jobs.config.clusters import Cluster
from jobs.config.settings import Settings
from jobs.ingest import start
from jobs.kafka.kafka_client import topic_ends
from jobs.tables.paths import table_path
from pipelines import event_batch
from pipelines.bronze_batch import Records, bronze
from pipelines.coverage import Span
from pipelines.decoding.source_record import SourceRecord
from pipelines.event_sources import Claim, EventSource
from pipelines.log_envelopes import LARGEST_MESSAGE
from schemas.bronze import ADMIN_OBSERVATIONS, COORDINATOR_EVENTS, COVERAGE, QUARANTINE
from schemas.json_depth import DEEPEST_JSON
from testing.processor_time import within
from testing.waiting import wait_until
from tests.source.hostile_messages import HARMLESS, HOSTILE, good

READING = event_batch.TopicReader(cluster="c", topic="t", layout="default", zone="UTC")
_numbers = itertools.count()


def read(*messages, reading=READING, headers=()):
    records = replace(
        Records.of([SourceRecord(0, at, 1_790_000_000_000, None, m) for at, m in enumerate(messages)], 0),
        headers=headers,
    )
    span = Span(partition=0, log_epoch=0, from_offset=0, to_offset=len(messages))
    rows = {name: array.to_pylist() for name, array in reading(records, {0: span}).items()}
    return rows[COORDINATOR_EVENTS.name], rows[QUARANTINE.name], span


def kept(message):
    """The quarantine keeps the beginning of a message that is too large."""
    return message[: event_batch.KEPT_BYTES] if message is not None and len(message) > LARGEST_MESSAGE else message


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_is_quarantined_at_once_between_two_that_are_read(name):
    message, reason = HOSTILE[name]
    events, refused, span = within(2, lambda: read(good(1).encode(), message, good(2).encode()))
    assert [1, 2] == [event["generation_id"] for event in events]
    assert [(1, reason, kept(message))] == [(row["source_offset"], row["reason"], row["raw_value"]) for row in refused]
    assert (3, 1, 0) == (span.records, span.quarantined, span.skipped)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_message_without_a_line_of_ours_is_passed_over_at_once(name):
    assert ([], []) == within(4, lambda: read(HARMLESS[name]))[:2]


@pytest.mark.parametrize(
    "error", [RecursionError, MemoryError, OverflowError, UnicodeError, ValueError, KeyError, AssertionError]
)
def test_whatever_fails_on_one_message_quarantines_that_message(monkeypatch, error):
    reads = event_batch.read_line

    def fails(line, *others):
        if "generation 2" in line:
            raise error
        return reads(line, *others)

    monkeypatch.setattr(event_batch, "read_line", fails)
    events, refused, _ = read(*(good(n).encode() for n in (1, 2, 3)))
    assert [1, 3] == [event["generation_id"] for event in events]
    assert [("reader_failed", error.__name__)] == [(row["reason"], row["detail"]) for row in refused]
    monkeypatch.setattr("pipelines.decoding.record_decoding._decode", partial(_raise, error))
    records = Records.of([SourceRecord(0, 0, 0, b"\x00\x02\x00\x01g", None)], 0)
    assert ["reader_failed"] == [row["reason"] for row in bronze(records, cluster="c")[QUARANTINE.name].to_pylist()]


def _raise(error, *_):
    raise error


def test_a_row_that_arrow_cannot_hold_quarantines_its_message(monkeypatch):
    reads = event_batch.read_line

    def strange(line, *others):
        found = reads(line, *others)
        return found._replace(group_id="\ud800") if "generation 2" in line else found

    monkeypatch.setattr(event_batch, "read_line", strange)
    events, refused, span = read(*(good(n).encode() for n in (1, 2, 3)))
    assert [1, 3] == [event["generation_id"] for event in events]
    assert [(1, "reader_failed")] == [(row["source_offset"], row["reason"]) for row in refused]
    assert (3, 1) == (span.records, span.quarantined)


def test_an_unreadable_line_does_not_hide_the_lines_after_it():
    lines = "\n".join((good(1), good(2).replace("2026-11-21", "9999-11-21"), good(3)))
    events, refused, _ = read(lines.encode())
    assert [1, 3] == [event["generation_id"] for event in events]
    assert ["invalid_timestamp"] == [row["reason"] for row in refused]


def test_what_shippers_nest_and_the_largest_message_are_read():
    line = good(1)
    for _ in range(4):
        line = json.dumps({"message": line, "fields": {"a": [[[[1]]]]}})
    deep = json.dumps({"message": good(2), "x": json.loads("[" * (DEEPEST_JSON - 1) + "]" * (DEEPEST_JSON - 1))})
    largest = good(3).encode()
    largest += b"\n" * (LARGEST_MESSAGE - len(largest))
    events, refused, _ = read(line.encode(), deep.encode(), largest)
    assert ([1, 2, 3], []) == ([event["generation_id"] for event in events], refused)


def test_many_zones_and_layouts_in_messages_fill_no_cache():
    messages = [
        json.dumps({"kind": "log", "source": "x", "at": 0, "line": good(1)} | {name: f"Zone/Number{n}"}).encode()
        for n in range(20_000)
        for name in ("zone", "layout")
    ]
    read(good(1).encode())  # the reader's own layout and zone are kept, whichever test reads first
    before = [cache.cache_info().currsize for cache in _caches()]
    events, refused, _ = read(*messages)
    assert ([], len(messages)) == (events, len(refused))
    assert before == [cache.cache_info().currsize for cache in _caches()]


def _caches():
    return (event_batch._layout, event_batch._zone, event_batch._known_layout, event_batch._known_zone)


BROKER_3 = EventSource(topic="t", header="shipper=b3", brokers=(3,), kinds=(Claim.COORDINATOR,))
DEPLOYS = EventSource(topic="t", header="shipper=ci", kinds=(Claim.MARK,))
BOUND = replace(READING, sources=(BROKER_3, DEPLOYS))
MARK = b'{"kind":"mark","text":"deploy","at":1790000000000}'


@pytest.mark.parametrize(
    ("message", "headers", "detail"),
    [
        (good(1, broker=3).encode(), [("shipper", b"b3")], None),
        (good(1, broker=2).encode(), [("shipper", b"b3")], "header shipper=b3 may not send lines of broker 2"),
        (good(1, broker=3).encode(), [("shipper", b"ci")], "header shipper=ci may not send coordinator messages"),
        (MARK, [("shipper", b"ci")], None),
        (MARK, [("shipper", b"b3")], "header shipper=b3 may not send mark messages"),
        (b'{"kind":"admin","source":"x","at":1}', [("shipper", b"ci")], "header shipper=ci may not send admin messages"),
        (good(1, broker=3).encode(), [], "no source in the settings sends such messages"),
        (good(1, broker=3).encode(), [("shipper", None)], "no source in the settings sends such messages"),
        (good(1, broker=3).encode(), [("shipper", b"b3"), ("shipper", b"b3")], "no source in the settings sends such messages"),
        (json.dumps({"message": good(1, broker=3), "broker_id": 2}).encode(), [("shipper", b"b3")], None),
    ],
)  # fmt: skip
def test_a_message_is_believed_only_within_what_its_source_may_say(message, headers, detail):
    events, refused, span = read(message, reading=BOUND, headers=[headers])
    if detail is None:
        assert ([], 0) == (refused, span.skipped)
        assert all(("header shipper=b3", 3) == (e["source_binding"], e["broker_id"]) for e in events)
    else:
        assert ([], [("untrusted_source", detail)]) == (events, [(row["reason"], row["detail"]) for row in refused])


def test_a_line_without_a_broker_gets_the_only_one_that_its_source_speaks_for():
    unnamed = "[2026-11-21 10:00:00,123] INFO Loaded offsets and group metadata (kafka.coordinator.group.GroupMetadata)"
    assert [] == read(unnamed.encode(), reading=BOUND, headers=[[("shipper", b"b3")]])[1]
    assert (3, None) == (BROKER_3.broker_of(Claim.COORDINATOR, None), BROKER_3.broker_of(Claim.CONNECT, None))
    assert 2 == BROKER_3.broker_of(Claim.COORDINATOR, 2)


class Events:
    """Several events topics of one cluster, and an ingest of all of their messages."""

    def __init__(self, spark, warehouse, servers):
        self.spark, self.warehouse, self.number = spark, warehouse, next(_numbers)
        self.admin = AdminClient({"bootstrap.servers": servers})
        self.cluster = Cluster(name="c", bootstrap_servers=servers, events_topic=self.topic("events"))
        self.producer = Producer({"bootstrap.servers": servers, "message.max.bytes": 9_000_000, "linger.ms": 0})

    def topic(self, name):
        name = f"{name}-{self.number}"
        topic = NewTopic(name, 1, 1, config={"max.message.bytes": "9000000"})
        self.admin.create_topics([topic])[name].result(120)
        wait_until(lambda: topic_ends(self.admin, name))
        return name

    def send(self, *messages, topic=None, headers=()):
        for message in messages:
            self.producer.produce(topic or self.cluster.events_topic, message, headers=list(headers))
        assert 0 == self.producer.flush(120)

    def ingest(self, **changes):
        cluster = replace(self.cluster, **changes)
        start(self.spark, Settings(warehouse=self.warehouse, clusters=(cluster,)), once=True).wait()

    def rows(self, table, *columns):
        found = deltalake.DeltaTable(table_path(self.warehouse, table)).to_pyarrow_table(columns=list(columns))
        return sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.fixture
def events(spark, warehouse, broker):
    return Events(spark, warehouse, broker.bootstrap_servers)


def test_ingest_reads_every_good_message_between_hostile_ones_and_goes_on_after_a_restart(events):
    generations = itertools.count(1)
    for _ in range(2):
        for message, _ in HOSTILE.values():
            events.send(good(next(generations)).encode(), message)
        events.send(*HARMLESS.values(), good(next(generations)).encode())
        events.ingest()
    whole = len(HOSTILE) + 1
    assert [(n,) for n in range(1, 2 * whole + 1)] == events.rows(COORDINATOR_EVENTS, "generation_id")
    expected = sorted((reason, kept(message)) for message, reason in HOSTILE.values() for _ in range(2))
    assert expected == events.rows(QUARANTINE, "reason", "raw_value")
    topic = events.cluster.events_topic
    counted = [row[1:] for row in events.rows(COVERAGE, "source", "records", "quarantined") if row[0] == topic]
    assert [(2 * len(HOSTILE) + 1 + len(HARMLESS), len(HOSTILE))] * 2 == counted


def test_ingest_reads_a_topic_of_each_principal_and_believes_each_only_for_its_brokers(events):
    first, second, marks = (events.topic(name) for name in ("broker-1", "broker-2", "marks"))
    sources = (
        EventSource(topic=first, brokers=(1,), kinds=(Claim.COORDINATOR, Claim.CONTROLLER)),
        EventSource(topic=second, header="gateway=b2", brokers=(2,)),
        EventSource(topic=marks, kinds=(Claim.MARK,)),
    )
    events.send(good(1, broker=1).encode(), good(2, broker=2).encode(), topic=first)
    events.send(good(3, broker=2).encode(), topic=second, headers=[("gateway", b"b2")])
    events.send(good(4, broker=2).encode(), topic=second)
    events.send(MARK, good(5, broker=1).encode(), topic=marks)
    events.send(good(6, broker=1).encode())
    events.ingest(event_sources=sources)
    assert [(1, 1, f"topic {first}"), (3, 2, "header gateway=b2")] == events.rows(
        COORDINATOR_EVENTS, "generation_id", "broker_id", "source_binding"
    )
    assert 1 == len(events.rows(ADMIN_OBSERVATIONS, "kind"))
    assert sorted(
        [
            (first, f"topic {first} may not send lines of broker 2"),
            (second, "no source in the settings sends such messages"),
            (marks, f"topic {marks} may not send coordinator messages"),
        ]
    ) == events.rows(QUARANTINE, "source", "detail")


def test_of_a_message_that_is_too_large_the_quarantine_keeps_the_beginning():
    key, value = b"k" * 9_000_000, b"v" * 9_000_000
    records = Records.of([SourceRecord(0, 5, 1_790_000_000_000, key, value)], log_epoch=0)
    span = Span(partition=0, log_epoch=0, from_offset=5, to_offset=6)
    (row,) = READING(records, {0: span})[QUARANTINE.name].to_pylist()
    assert (b"k" * 65_536, b"v" * 65_536) == (row["raw_key"], row["raw_value"])
    assert "the message has 9,000,000 bytes" in row["detail"]
    assert "the first 65,536 bytes of the value are kept" in row["detail"]
