"""A commit's metadata and leader epoch show the library that committed, and for franz-go and brod the member."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.decoding.commit_metadata import WITH_EPOCH, WITHOUT_EPOCH, CommitMark, commit_mark
from pipelines.decoding.record_decoding import decode_record, is_offset_commit
from testing.records.samples import clients

CAPTURES = Path(__file__).parents[1] / "captures"
UUID = "70493405-b405-4697-ad6d-a38915275c98"
NOTHING = CommitMark()


def marks(records) -> set[CommitMark]:
    values = [decode_record(*record).body["value"] for record in records if is_offset_commit(record[0]) and record[1]]
    assert values
    return {commit_mark(value["metadata"], value.get("leaderEpoch")) for value in values}


@pytest.mark.parametrize("member_id", [f"kgo-{UUID}", f"orders-0-{UUID}", "AB-_efghijklmnopqrstuv=="])
def test_franz_go_names_the_member(member_id) -> None:
    expected = CommitMark(libraries=frozenset({"franz-go"}), member_id=member_id)
    assert expected == commit_mark(member_id, 4) == commit_mark(member_id, -1)


def test_a_known_member_id_may_have_any_form() -> None:
    assert NOTHING == commit_mark("billing", 4)
    assert CommitMark(libraries=frozenset({"franz-go"}), member_id="billing") == commit_mark("billing", 4, {"billing"})


@pytest.mark.parametrize("process", ["'a@host-1.example'/<0.45.0>", "nonode@nohost/<0.18980.6>"])
def test_brod_names_its_node_and_process(process) -> None:
    expected = CommitMark(libraries=frozenset({"brod"}), process=process)
    assert expected == commit_mark(f"+1/{process}", -1) == commit_mark(process, -1)


@pytest.mark.parametrize(
    ("raw", "is_streams"),
    [
        (struct.pack(">bq", 2, 1_795_262_500_123), True),
        (struct.pack(">bq", 2, -1), True),
        (struct.pack(">bqi", 2, 1_795_262_500_123, 0), True),
        (struct.pack(">bq", 1, 1_795_262_500_123), True),
        (struct.pack(">bqi", 1, 1_795_262_500_123, 0), False),
        (struct.pack(">bq", 3, 1_795_262_500_123), False),
        (struct.pack(">bi", 2, 7), False),
    ],
)
def test_streams_writes_a_version_and_a_time(raw, is_streams) -> None:
    expected = CommitMark(libraries=frozenset({"streams"})) if is_streams else NOTHING
    assert expected == commit_mark(base64.b64encode(raw).decode(), 3)


def test_without_metadata_the_leader_epoch_narrows_it_down() -> None:
    assert WITH_EPOCH == commit_mark("", 0).libraries
    assert WITHOUT_EPOCH == commit_mark("", -1).libraries
    assert NOTHING == commit_mark("", None)
    # Spring's containers commit without an epoch, so its absence does not exclude Java.
    assert {"java"} == WITH_EPOCH & WITHOUT_EPOCH


@pytest.mark.parametrize("text", ["NO_METADATA", "+1/", "+1/a@b", "+1/a b/<0.1.2>", "Ag", "Ag==", "{}", UUID, "é" * 9])
def test_what_an_application_writes_shows_nothing(text) -> None:
    assert NOTHING == commit_mark(text, 4) == commit_mark(text, -1)


@settings(derandomize=True, max_examples=300)
@given(st.text(max_size=60), st.none() | st.integers(-(2**31), 2**31 - 1))
def test_any_text_is_taken(text, epoch) -> None:
    assert commit_mark(text, epoch).libraries <= WITH_EPOCH | WITHOUT_EPOCH | {"franz-go", "brod", "streams"}


def test_a_long_text_is_not_examined() -> None:
    assert NOTHING == commit_mark("-" * 30_000 + UUID, 1)


@pytest.mark.parametrize(
    ("capture", "libraries"),
    [
        ("franz", {"franz-go"}),
        ("grow-franz", {"franz-go"}),
        ("quiet-franz", {"franz-go"}),
        ("kafkago", WITHOUT_EPOCH),
        ("kafkajs", WITHOUT_EPOCH),
        ("quiet-kafkajs", WITHOUT_EPOCH),
        ("aiokafka", WITHOUT_EPOCH),
        ("sarama-coop", WITHOUT_EPOCH),
        ("java-regex", WITH_EPOCH),
    ],
)
def test_recorded_commits_show_their_library(capture, libraries) -> None:
    assert {frozenset(libraries)} == {mark.libraries for mark in marks(clients(capture))}


@pytest.mark.parametrize("capture", ["franz", "grow-franz", "quiet-franz"])
def test_franz_gos_commits_name_members_of_the_group(capture) -> None:
    groups = [decode_record(*record).body["value"] for record in clients(capture)]
    known = {member["memberId"] for group in groups for member in group.get("members", ())}
    committed = {mark.member_id for mark in marks(clients(capture))}
    assert committed
    assert committed <= known


@pytest.mark.parametrize("folder", sorted(CAPTURES.glob("*/offsets.parquet")), ids=lambda path: path.parent.name)
def test_commits_of_the_lab_are_of_java_librdkafka_and_streams(folder) -> None:
    table = pq.read_table(folder, columns=["key", "value"])
    records = list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))
    if not any(is_offset_commit(key) and value for key, value in records):
        return
    assert {mark.libraries for mark in marks(records)} <= {WITH_EPOCH, frozenset({"streams"})}
