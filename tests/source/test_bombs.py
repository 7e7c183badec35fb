"""A batch of kilobytes that unpacks to more than a client accepts is a gap, and reading continues after it."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from jobs.kafka import batch_headers
from jobs.kafka.batch_headers import BatchOffsets, batch_of
from jobs.kafka.kafka_client import topic_ends
from jobs.kafka.kafka_read import Range, RangeReader
from jobs.kafka.kafka_source import _around
from pipelines.coverage import Span

LARGE = 150 << 20


def bomb(servers: str, topic: str, sizes: list[int]) -> None:
    options = {
        "bootstrap.servers": servers, "compression.type": "zstd", "message.max.bytes": 1_000_000_000,
        "queue.buffering.max.kbytes": 2_000_000, "linger.ms": 1_000, "batch.size": 999_000_000,
    }  # fmt: skip
    producer = Producer(options)
    for size in sizes:
        producer.produce(topic, bytes(size))
    assert 0 == producer.flush(120)


def test_reading_goes_on_after_batches_that_cannot_be_unpacked(broker) -> None:
    servers, topic = broker.bootstrap_servers, "bombs"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(120)
    good = Producer({"bootstrap.servers": servers})
    for sizes in ([LARGE], [1 << 20] * 150, [], [LARGE], [LARGE]):
        good.produce(topic, b"good")
        good.flush(120)
        bomb(servers, topic, sizes)
    good.produce(topic, b"good")
    good.flush(120)
    ends = topic_ends(admin, topic)
    assert ends is not None
    _, end = ends.ends[0]
    reader = RangeReader({"bootstrap.servers": servers}, topic, [Range(partition=0, log_epoch=0, start=0, end=end)])
    read = [
        (offset, value) for piece in reader for offset, value in zip(piece.offset.tolist(), piece.value, strict=True)
    ]
    assert [b"good"] * 6 == [value for _, value in read]
    missed = {offset for gap in reader.gaps for offset in range(gap.from_offset, gap.to_offset)}
    assert set(range(end)) == missed | {offset for offset, _ in read}
    assert 153 == len(missed)
    assert all("cannot be unpacked" in (gap.gap_reason or "") for gap in reader.gaps)


def test_a_header_says_where_a_batch_ends_and_a_broken_one_says_nothing() -> None:
    header = struct.Struct(">qiibIhi")
    raw = header.pack(7, header.size - 12 + 5, 0, 2, 0, 4, 2) + bytes(5) + header.pack(10, 100, 0, 2, 0, 4, 0)
    assert [None, BatchOffsets(7, 10), BatchOffsets(7, 10), BatchOffsets(10, 11), None] == [
        batch_of(raw, at) for at in (6, 7, 9, 10, 11)
    ]
    for broken in (b"", raw[:20], header.pack(0, -5, 0, 2, 0, 0, 0), header.pack(0, 0, 0, 2, 0, 0, 0), bytes(99)):
        assert batch_of(broken, 3) is None


@pytest.mark.parametrize(
    ("gaps", "parts"),
    [
        ([], [(10, 20)]),
        ([(10, 12)], [(12, 20)]),
        ([(15, 20)], [(10, 15)]),
        ([(12, 14)], [(10, 12), (14, 20)]),
        ([(18, 19), (12, 14), (14, 15)], [(10, 12), (15, 18), (19, 20)]),
        ([(10, 20)], []),
        ([(5, 30)], []),
    ],
)
def test_what_was_read_lies_between_the_gaps(gaps, parts) -> None:
    span = Span(partition=0, log_epoch=0, from_offset=10, to_offset=20, records=7)
    missed = [Span(partition=0, log_epoch=0, from_offset=a, to_offset=b, gap_reason="why") for a, b in gaps]
    found = _around({0: span}, missed)
    assert parts == [(each.from_offset, each.to_offset) for each in found]
    assert (7 if parts else 0) == sum(each.records for each in found)


@pytest.mark.parametrize(
    "described", [[], [{"partitions": []}], [{"partitions": [{"partition_index": 1, "leader_id": 1}]}]]
)
def test_a_partition_that_brokers_do_not_know_has_no_batch(monkeypatch, described) -> None:
    client = SimpleNamespace(describe_topics=lambda names: described)
    monkeypatch.setattr(batch_headers, "_clients", {frozenset(): client})
    assert batch_headers.batch_at({}, "t", 0, 5) is None


def test_a_response_without_the_partition_has_no_batch(monkeypatch) -> None:
    known = {"partition_index": 0, "leader_id": 1}
    client = SimpleNamespace(
        describe_topics=lambda names: [{"partitions": [known]}],
        send_to=lambda leader, request: SimpleNamespace(responses=[]),
    )
    monkeypatch.setattr(batch_headers, "_clients", {frozenset(): client})
    assert batch_headers.batch_at({}, "t", 0, 5) is None
