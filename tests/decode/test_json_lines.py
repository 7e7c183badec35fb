"""What `regroup decode` prints of a record: one line of ASCII, whatever the bytes are, and the reason for what is closed."""

from __future__ import annotations

import base64
import doctest
import json
import struct
from pathlib import Path

import pytest

from pipelines.decoding import group_partition, json_lines
from pipelines.decoding.group_partition import partition_of
from pipelines.decoding.json_lines import json_line
from pipelines.decoding.source_record import SourceRecord
from schemas.states import QuarantineReason
from testing.records.samples import golden, written_ones
from tests.source.offset_records import commit_key, commit_value, group_key, text

ROOT = Path(__file__).parents[2]
AT = 1_795_262_500_123


def line(key: bytes | None, value: bytes | None, **more: bool) -> dict:
    printed = json_line(SourceRecord(3, 17, AT, key, value), "__consumer_offsets", **more)
    assert printed.isascii()
    assert printed.isprintable()
    return json.loads(printed)


def test_a_commit_is_reported_with_its_place_and_times_in_utc() -> None:
    found = line(commit_key("billing"), commit_value(41, AT))
    assert ("__consumer_offsets", 3, 17, "2026-11-21T12:01:40.123Z") == tuple(
        found[name] for name in ("topic", "partition", "offset", "timestamp")
    )
    assert ("OffsetCommit", "billing", 4, False) == tuple(
        found[name] for name in ("kind", "group_id", "value_version", "is_tombstone")
    )
    assert {"group": "billing", "topic": "orders", "partition": 0} == found["key"]
    assert 41 == found["value"]["offset"]
    assert {"commitTimestamp": "2026-11-21T12:01:40.123Z"} == found["times"]
    assert "not_decoded" not in found
    assert "value_base64" not in found


@pytest.mark.parametrize(
    ("metadata", "committer"),
    [
        (
            "kgo-2f1f7a0e-0000-4000-8000-000000000000",
            {"library": "franz-go", "member_id": "kgo-2f1f7a0e-0000-4000-8000-000000000000"},
        ),
        ("+1/worker@host/<0.12.0>", {"library": "brod", "process": "worker@host/<0.12.0>"}),
        ("a note of the application", None),
        ("", None),
    ],
)
def test_a_commit_is_reported_with_who_wrote_it_if_its_metadata_shows_that(
    metadata: str, committer: dict | None
) -> None:
    """OffsetCommitValue v3: offset, leader epoch, metadata, time."""
    value = struct.pack(">hqi", 3, 41, 7) + struct.pack(">h", len(metadata)) + metadata.encode() + struct.pack(">q", AT)
    assert committer == line(commit_key("billing"), value).get("committer")


def test_a_tombstone_has_no_value() -> None:
    found = line(commit_key("billing"), None)
    assert found["is_tombstone"]
    assert found["value"] is None
    assert found["value_version"] is None


def test_raw_adds_the_bytes_as_they_are_stored() -> None:
    found = line(commit_key("billing"), commit_value(41), is_raw=True)
    assert commit_key("billing") == base64.b64decode(found["key_base64"])
    assert commit_value(41) == base64.b64decode(found["value_base64"])


@pytest.mark.parametrize(
    ("key", "value", "field", "reason"),
    [
        (None, b"x", "key", QuarantineReason.NULL_KEY),
        (b"", b"x", "key", QuarantineReason.TRUNCATED),
        (b"\x7f\xff", b"x", "key", QuarantineReason.UNKNOWN_TYPE),
        (commit_key("billing") + b"!", b"x", "key", QuarantineReason.TRAILING_BYTES),
        (commit_key("billing"), b"\x00\x63", "value", QuarantineReason.UNKNOWN_VERSION),
        (commit_key("billing"), commit_value(41)[:-3], "value", QuarantineReason.TRUNCATED),
    ],
)
def test_what_cannot_be_decoded_says_why_and_is_there_in_base64(key, value, field, reason) -> None:
    found = line(key, value)
    (why,) = found["not_decoded"]
    assert (field, reason.value, reason.says) == (why["field"], why["reason"], why["meaning"])
    assert found["key_base64"] == (None if key is None else base64.b64encode(key).decode())
    assert base64.b64encode(value).decode() == found["value_base64"]
    assert ("billing" == found.get("group_id")) == (field == "value"), "the key is told if only the value is damaged"


def group_value(subscription: bytes) -> bytes:
    """GroupMetadataValue v3 of one member with this subscription."""
    member = text("m-1") + b"\xff\xff" + text("app") + text("/10.0.0.1") + (300_000).to_bytes(4) + (45_000).to_bytes(4)
    member += len(subscription).to_bytes(4) + subscription + (0).to_bytes(4)
    head = (3).to_bytes(2) + text("consumer") + (1).to_bytes(4) + text("range") + text("m-1") + AT.to_bytes(8)
    return head + (1).to_bytes(4) + member


def test_member_data_that_stays_closed_is_named_by_its_field() -> None:
    found = line(group_key("billing"), group_value(b"\x00\x00\x00"))
    (why,) = found["not_decoded"]
    assert ("value.members[0].subscription", "truncated") == (why["field"], why["reason"])
    assert "GroupMetadata" == found["kind"]
    assert "m-1" == found["value"]["leader"]


def test_a_name_with_control_sequences_is_escaped() -> None:
    assert "a\x1b[2J\u202eb" == line(commit_key("a\x1b[2J\u202eb"), commit_value(1))["group_id"]


def test_a_line_that_would_be_too_long_has_sizes_instead(monkeypatch) -> None:
    monkeypatch.setattr(json_lines, "LINE_CHARACTERS", 600)
    key, value = commit_key("g" * 500), commit_value(1)
    found = line(key, value)
    assert ["oversized"] == [why["reason"] for why in found["not_decoded"]]
    assert (len(key), len(value)) == (found["key_bytes"], found["value_bytes"])
    assert 17 == found["offset"]


def test_a_decoder_that_fails_costs_one_line_and_not_the_command(monkeypatch) -> None:
    def broken(*_) -> None:
        raise RecursionError

    monkeypatch.setattr(json_lines, "decode_record", broken)
    assert ["reader_failed"] == [why["reason"] for why in line(b"k", b"v")["not_decoded"]]


def test_every_kind_of_record_is_one_line() -> None:
    for key, value in (*golden(), *written_ones(newest_only=False)):
        assert {"kind", "group_id", "key"} <= line(key, value).keys()


def test_the_examples_of_the_library_are_true() -> None:
    for module in (json_lines, group_partition):
        assert 0 == doctest.testmod(module).failed
    described = doctest.testfile(str(ROOT / "docs" / "decode.md"), module_relative=False)
    assert 0 == described.failed
    assert described.attempted >= 3


def test_a_group_is_in_the_partition_that_java_computes() -> None:
    """`"polygenelubricants".hashCode()` is the least integer, of which Kafka's abs makes 0; 𝄞 is two units of UTF-16."""
    assert [0, 0, 97, 0xD834 * 31 + 0xDD1E] == [
        group_partition.java_hash(name) for name in ("", "polygenelubricants", "a", "\U0001d11e")
    ]
    assert 0 == partition_of("polygenelubricants", 50)
