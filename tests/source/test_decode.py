"""`regroup decode` of a real broker's topics and segment files, of a capture, and of files that are none."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from jobs.captures.recording import Capture
from jobs.cli import main
from jobs.kafka.kafka_client import topic_ends
from jobs.kafka.topic_records import Selection, TopicRecords
from pipelines import limits
from pipelines.decoding import record_batches
from pipelines.decoding.group_partition import partition_of
from testing.waiting import wait_until
from tests.source.conftest import Topic
from tests.source.offset_records import commit, commit_value, deletion, group_record

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "captures"


@pytest.fixture
def decode(capsys):
    def run(*arguments: object) -> list[dict]:
        assert 0 == main(["decode", *map(str, arguments)])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture
def sentence(capsys):
    def run(*arguments: object) -> str:
        assert 2 == main(["decode", *map(str, arguments)])
        printed = capsys.readouterr()
        assert "" == printed.out
        assert 1 == printed.err.count("\n")
        return printed.err

    return run


def offsets(lines: list[dict]) -> list[int]:
    return [line["offset"] for line in lines]


# --- topics ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def written(topic):
    """Partition 0 has five records, of which the fourth cannot be decoded; partition 1 has one."""
    at = 1_795_262_500_000
    bad = commit(3, at_ms=at + 3_000)._replace(value=b"\x00\x63")
    topic.write([commit(0, at_ms=at), group_record(1, at_ms=at + 1_000), deletion(2, at_ms=at + 2_000)])
    topic.write([bad, commit(4, "other", at_ms=at + 4_000)])
    topic.write([commit(0, "elsewhere", at_ms=at)], partition=1)
    return topic


def where(topic) -> list[str]:
    return ["--bootstrap-servers", topic.servers, "--topic", topic.name]


def test_a_topic_is_printed_from_its_beginning_in_order(written, decode) -> None:
    lines = decode(*where(written))
    assert [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0)] == [(line["partition"], line["offset"]) for line in lines]
    assert ["OffsetCommit", "GroupMetadata", "OffsetCommit"] == [line["kind"] for line in lines[:3]]
    assert ["unknown_version"] == [why["reason"] for why in lines[3]["not_decoded"]]
    assert "2026-11-21T12:01:40.000Z" == lines[0]["timestamp"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--partition", "1"], [0]),
        (["--max-records", "2"], [0, 1]),
        (["--max-records", "0"], []),
        (["--partition", "0", "--from-offset", "1", "--to-offset", "3"], [1, 2]),
        (["--partition", "0", "--since", "2026-11-21T12:01:43Z"], [3, 4]),
        (["--partition", "0", "--since", "2027-01-01T00:00:00Z"], []),
        (["--partition", "0", "--from-beginning", "--to-offset", "1"], [0]),
        (["--partition", "0", "--from-end"], []),
    ],
)
def test_options_choose_records(written, decode, options, expected) -> None:
    assert expected == offsets(decode(*where(written), *options))


def test_a_group_is_read_from_its_partition_alone(topic, decode, monkeypatch) -> None:
    home = partition_of("g", 2)
    topic.write([commit(0, "g"), commit(1, "other"), group_record(2, "g")], partition=home)
    topic.write([commit(0, "g")], partition=1 - home)  # Here, no coordinator writes it.
    lines = decode(*where(topic), "--group", "g")
    assert [(home, 0), (home, 2)] == [(line["partition"], line["offset"]) for line in lines]


def test_keys_that_name_no_group_are_counted(topic, capsys) -> None:
    topic.write([commit(0, "g"), commit(1, "g")._replace(key=b"\x00\x01")], partition=partition_of("g", 2))
    assert 0 == main(["decode", *where(topic), "--group", "g"])
    printed = capsys.readouterr()
    assert 1 == len(printed.out.splitlines())
    assert "key cannot be decoded, so their group is unknown: 1" in printed.err


def test_the_coordinators_own_topic_is_the_default(broker, decode) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    admin = AdminClient(servers)
    if "decoded-in" not in admin.list_topics(timeout=120).topics:
        admin.create_topics([NewTopic("decoded-in", 1, 1)])["decoded-in"].result(120)
        wait_until(lambda: topic_ends(admin, "decoded-in"))
    member = Consumer(servers | {"group.id": "decoded"})
    member.commit(offsets=[TopicPartition("decoded-in", 0, 5)], asynchronous=False)
    member.close()
    lines = decode("--bootstrap-servers", broker.bootstrap_servers, "--group", "decoded")
    assert {"decoded-in"} == {line["key"]["topic"] for line in lines if line["kind"] == "OffsetCommit"}
    assert 5 in [line["value"]["offset"] for line in lines if line["kind"] == "OffsetCommit" and line["value"]]


def test_following_goes_on_with_what_comes_also_in_new_partitions(topic) -> None:
    topic.write([commit(0)])
    command = [sys.executable, "-P", "-m", "jobs.cli", "decode", *where(topic), "--follow", "--max-records", "3"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert 0 == json.loads(process.stdout.readline())["offset"]
            topic.write([commit(1)])
            assert 1 == json.loads(process.stdout.readline())["offset"]
            topic.admin.create_partitions([NewPartitions(topic.name, 3)])[topic.name].result(120)
            wait_until(lambda: 2 in topic_ends(topic.admin, topic.name).ends)
            # Another producer, because one that exists learns of new partitions only after minutes.
            Topic(topic.servers, topic.name).write([commit(0)], partition=2)
            assert 2 == json.loads(process.stdout.readline())["partition"]
            assert 0 == process.wait(120)
        finally:
            process.kill()


def test_following_from_an_offset_beyond_the_end_waits_for_it(topic) -> None:
    topic.write([commit(0), commit(1)])
    gaps: list[str] = []
    options, chosen = {"bootstrap.servers": topic.servers}, Selection(partition=0, start=3)
    records = TopicRecords(options, topic.name, chosen, gaps.append).follow()
    assert [None, None] == [next(records), next(records)]
    topic.write([commit(n) for n in range(2, 5)])
    found = next(filter(None, records))
    assert (3, []) == (found.offset, gaps)


def test_a_reader_that_leaves_ends_the_command_in_silence(topic) -> None:
    topic.write([commit(at, "g" * 200) for at in range(2_000)])
    command = f"{sys.executable} -P -m jobs.cli decode {' '.join(where(topic))} | head -n 1"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "", 1) == (ended.returncode, ended.stderr, len(ended.stdout.splitlines()))


def test_what_is_missing_is_one_sentence(written, sentence) -> None:
    servers = ["--bootstrap-servers", written.servers]
    assert "has no topic absent" in sentence(*servers, "--topic", "absent")
    assert "has the partitions 0\N{EN DASH}1, but not 2" in sentence(*where(written), "--partition", 2)
    assert "not both" in sentence(*where(written), "--partition", 1, "--group", "g")
    assert "--since 'noon' is not a valid time" in sentence(*where(written), "--since", "noon")
    assert "--max-records must be" in sentence(*where(written), "--max-records", -1)
    assert "Which cluster?" in sentence()


# --- segment files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_brokers_segment_says_what_its_topic_says(broker, topic, decode, compression) -> None:
    producer = Producer({"bootstrap.servers": topic.servers, "compression.type": compression, "linger.ms": 50})
    for at in range(200):
        record = commit(at, "billing-" * 10)
        producer.produce(topic.name, record.value, record.key, 0, timestamp=1_795_262_500_000 + at)
    assert 0 == producer.flush(120)
    folder = broker.directory / "data" / f"{topic.name}-0"
    (segment,) = folder.glob("*.log")
    if compression != "none":
        assert segment.stat().st_size < 200 * 80, "it is compressed"
    from_kafka = decode(*where(topic), "--partition", 0)
    assert 200 == len(from_kafka)
    assert from_kafka == decode(segment) == decode(folder)
    assert [7, 8] == offsets(decode(segment, "--from-offset", 7, "--max-records", 2))


def test_markers_of_transactions_are_left_out(broker, topic, decode) -> None:
    topic.write_in_a_transaction([commit(0), commit(1)])
    topic.write([commit(3)])
    folder = broker.directory / "data" / f"{topic.name}-0"
    assert [0, 1, 3] == offsets(decode(folder)) == offsets(decode(*where(topic)))


def number(value: int) -> bytes:
    """A zigzag varint."""
    value, out = (value << 1) ^ (value >> 63), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sized(raw: bytes | None) -> bytes:
    return number(-1) if raw is None else number(len(raw)) + raw


def record_of(delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\x00" + number(delta) + number(delta) + sized(key) + sized(value) + number(0)
    return number(len(body)) + body


def batch_of(base: int, body: bytes, count: int, *, attributes: int = 0, magic: int = 2) -> bytes:
    rest = struct.pack(">ibIhiqqqhii", 0, magic, 0, attributes, count - 1, 1_795_262_500_000, 0, -1, -1, -1, count)
    return struct.pack(">qi", base, len(rest) + len(body)) + rest + body


@pytest.fixture
def segment(tmp_path):
    folder = tmp_path / "__consumer_offsets-12"
    folder.mkdir()

    def write(*batches: bytes) -> Path:
        file = folder / "00000000000000000000.log"
        file.write_bytes(b"".join(batches))
        return file

    return write


ONE = record_of(0, commit(0).key, commit_value(1))


def test_place_and_offset_are_those_of_the_file(segment, decode) -> None:
    (line,) = decode(segment(batch_of(40, ONE, 1)))
    assert ("__consumer_offsets", 12, 40) == (line["topic"], line["partition"], line["offset"])


@pytest.mark.parametrize(
    ("damaged", "reason", "last"),
    [
        (batch_of(1, ONE, 1, magic=1), "unknown_version", None),
        (batch_of(1, ONE, 1, attributes=5), "unknown_version", 1),
        (batch_of(1, b"no gzip", 1, attributes=1), "invalid_value", 1),
        (batch_of(1, b"no snappy", 1, attributes=2), "invalid_value", 1),
        (batch_of(1, b"no lz4", 1, attributes=3), "invalid_value", 1),
        (batch_of(1, b"no zstd", 1, attributes=4), "invalid_value", 1),
        (batch_of(1, ONE[:-4], 1), "invalid_length", 1),
        (batch_of(1, b"", 1), "truncated", 1),
        (batch_of(1, number(3) + b"\x00\x00\x00", 1), "truncated", 1),
    ],
)
def test_a_batch_that_cannot_be_read_costs_nothing_else(segment, decode, damaged, reason, last) -> None:
    first, bad, after = decode(segment(batch_of(0, ONE, 1), damaged, batch_of(2, ONE, 1)))
    assert [0, 1, 2] == offsets([first, bad, after])
    (why,) = bad["not_decoded"]
    assert ("batch", reason, last) == (why["field"], why["reason"], bad["last_offset"])


def test_a_bomb_is_not_unpacked(segment, decode, monkeypatch) -> None:
    import gzip

    monkeypatch.setattr(record_batches, "UNPACKED_BATCH_BYTES", 100_000)
    bomb = batch_of(0, gzip.compress(bytes(10_000_000)), 1, attributes=1)
    (line,) = decode(segment(bomb))
    assert ["oversized"] == [why["reason"] for why in line["not_decoded"]]
    assert limits.UNPACKED_BATCH_BYTES <= 64 << 20


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (batch_of(1, ONE, 1)[:30], "truncated"),
        (batch_of(1, ONE, 1)[:-1], "truncated"),
        (struct.pack(">qi", 1, -5) + bytes(60), "invalid_length"),
    ],
)
def test_an_end_within_a_batch_is_reported(segment, decode, tail, reason) -> None:
    first, last = decode(segment(batch_of(0, ONE, 1), tail))
    assert "OffsetCommit" == first["kind"]
    assert [reason] == [why["reason"] for why in last["not_decoded"]]


def test_what_was_preallocated_is_no_record(segment, decode) -> None:
    assert [0] == offsets(decode(segment(batch_of(0, ONE, 1), bytes(4_096))))


def test_random_bytes_never_raise(segment, decode) -> None:
    whole = batch_of(0, ONE * 3, 3)
    for at in range(len(whole)):
        for value in (0, 0x7F, 0xFF):
            decode(segment(whole[:at] + bytes([value]) + whole[at + 1 :]))


def test_files_that_cannot_be_read_are_one_sentence(tmp_path, sentence) -> None:
    assert "There is no file" in sentence(tmp_path / "absent.log")
    os.mkfifo(tmp_path / "pipe.log")
    assert "not a regular file" in sentence(tmp_path / "pipe.log")
    assert "not a capture folder" in sentence(tmp_path)
    assert "are for topics" in sentence(tmp_path, "--follow")


# --- captures --------------------------------------------------------------------------------------------------------


def test_every_record_of_a_capture_is_a_line_and_in_its_groups_partition(decode) -> None:
    folder = CAPTURES / "eager_churn"
    capture = Capture(folder)
    lines = decode(folder)
    assert [(r.partition, r.offset) for r in capture.records()] == [(e["partition"], e["offset"]) for e in lines]
    assert not [line for line in lines if "not_decoded" in line]
    partitions = capture.meta["offsets_topic"]["partitions"]
    assert all(partition_of(line["group_id"], partitions) == line["partition"] for line in lines)
    chosen = lines[0]["group_id"]
    assert [line for line in lines if line["group_id"] == chosen] == decode(folder, "--group", chosen)


def test_a_capture_is_printed_without_waiting_for_long() -> None:
    began = time.monotonic()
    assert 0 == main(["decode", str(CAPTURES / "eager_churn"), "--max-records", "1"])
    assert time.monotonic() - began < 20
