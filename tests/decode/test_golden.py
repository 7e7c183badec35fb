"""Bytes that Kafka wrote are decoded to the values that it wrote."""

from __future__ import annotations

import json

import pytest

from pipelines.decoding.member_blobs import decode_assignment, decode_subscription
from pipelines.decoding.record_decoding import Decoded, decode_record, is_offset_commit
from testing.recordings import GOLDEN
from testing.records.samples import golden
from testing.records.writing import written

TOPIC = "AAAAAAAAAAAAAAAAAAAAAQ"
UUID = bytes(15) + b"\x01"


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


def test_a_member_that_gives_up_half_reads_as_such():
    """Written by 4.3.1: member in state 1 (unrevoked), partitions 0 and 1 kept, 2 and 3 revoked, with their epochs."""
    partitions = "03 {} 01 00 09 03 00000002 00000002"
    value = bytes.fromhex(
        "0000 00000002 00000002 01"
        f"02 {UUID.hex()} {partitions.format('00000000 00000001')}"
        f"02 {UUID.hex()} {partitions.format('00000002 00000003')}"
        "00"
    )
    decoded = decode_record(b"\x00\x08\x00\x01g\x00\x01m", value)
    assert {
        "key": {"groupId": "g", "memberId": "m"},
        "value": {
            "memberEpoch": 2,
            "previousMemberEpoch": 2,
            "state": 1,
            "assignedPartitions": [{"topicId": TOPIC, "partitions": [0, 1], "assignmentEpochs": [2, 2]}],
            "partitionsPendingRevocation": [{"topicId": TOPIC, "partitions": [2, 3], "assignmentEpochs": [2, 2]}],
        },
    } == decoded.body
    assert ("ConsumerGroupCurrentMemberAssignment", 8, 0, "g", "m", False) == (
        decoded.record_kind,
        decoded.key_version,
        decoded.value_version,
        decoded.group_id,
        decoded.member_id,
        decoded.is_tombstone,
    )


def test_every_record_of_a_real_cluster_decodes():
    assert [] == [record for record in golden() if not isinstance(decode_record(*record), Decoded)]


def test_every_blob_of_a_real_cluster_is_open():
    for key, value in golden():
        if value is None or is_offset_commit(key):
            continue
        for member in decode_record(key, value).body["value"].get("members", ()):
            assert "opaque" not in member["subscription"]
            assert "opaque" not in member["assignment"]


def test_connect_workers_tell_what_they_run_and_get():
    key = b"\x00\x02\x00\x15mailer-writer-connect"
    groups = [decode_record(*record).body["value"] for record in golden() if record[0] == key]
    members = [member for group in groups for member in group["members"]]
    # The first record is of the group's creation, before anybody joined.
    assert ["", *["connect"] * 20] == [group["protocolType"] for group in groups]
    assert {2} == {member["assignment"]["version"] for member in members}
    assert 0 < max(member["assignment"]["delay"] for member in members) <= 10_000
    tasks = {(c, t) for m in members for c, ts in m["assignment"]["assignment"].items() for t in ts}
    assert {("imports-sync", -1), ("imports-sync", 3)} <= tasks


@pytest.mark.parametrize(
    "line", lines("older_layouts.jsonl"), ids=lambda line: f"{line['writer'][-5:]}-{line['key'][:4]}"
)
def test_older_layouts_of_a_version_read_as_what_their_release_meant(line):
    decoded = decode_record(bytes.fromhex(line["key"]), bytes.fromhex(line["value"]))
    assert line["body"] == decoded.body


@pytest.mark.parametrize(
    "line",
    lines("user_data.jsonl"),
    ids=lambda line: f"{line['protocol']}-{line['blob']}-{line['userData'].get('version', '')}",
)
def test_user_data_reads_as_what_the_assignor_meant(line):
    raw = bytes.fromhex(line["raw"])
    if line["blob"] == "subscription":
        blob = b"\x00\x00" + written(["string"], ["t"], flexible=False) + written("bytes", raw, flexible=False)
        found = decode_subscription(blob, "consumer", line["protocol"])
    else:
        blob = b"\x00\x00" + b"\x00\x00\x00\x00" + written("bytes", raw, flexible=False)
        found = decode_assignment(blob, "consumer", line["protocol"])
    assert line["userData"] == found["userData"]
