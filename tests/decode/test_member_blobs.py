"""Subscriptions and assignments of every protocol, in every version and without fields that clients omit."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.decoding.member_blobs import decode_assignment, decode_subscription
from pipelines.decoding.record_decoding import decode_record
from schemas import member_blobs as facts
from schemas.records import KINDS
from testing.records.writing import record, values, written

OWNED = [{"topic": "orders", "partitions": [0, 3]}, {"topic": "returns", "partitions": []}]
SUBSCRIPTION = {
    "topics": ["orders", "returns"],
    "userData": None,
    "ownedPartitions": OWNED,
    "generationId": 41,
    "rackId": "eu-1a",
}
CONNECT_ASSIGNMENT = {
    "error": 0,
    "leader": "w-1",
    "leaderUrl": "http://a:8083/",
    "configOffset": 12,
    "assignment": [{"connector": "sink", "tasks": [-1, 0]}],
    "revoked": [{"connector": "sink", "tasks": [1]}],
    "delay": 300_000,
}


def blob(fields: tuple[facts.BlobField, ...], values: dict, version: int, *, declared: int | None = None) -> bytes:
    """`values` as a client of `version` writes them, with another version `stated` in front if given."""
    parts = [written(f.type, values[f.name], flexible=False) for f in fields if f.since <= version]
    return struct.pack(">h", version if declared is None else declared) + b"".join(parts)


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_has_what_its_version_has(version):
    expected = {"version": version, "topics": ["orders", "returns"], "userData": None}
    expected |= {"userDataLayout": "empty", "userDataSize": None}
    later = {"ownedPartitions": {"orders": [0, 3], "returns": []}, "generationId": 41, "rackId": "eu-1a"}
    expected |= {name: value if at <= version else None for at, (name, value) in enumerate(later.items(), 1)}
    assert expected == decode_subscription(blob(facts.SUBSCRIPTION, SUBSCRIPTION, version), "consumer", "range")


def test_a_version_1_without_owned_partitions_is_read():
    found = decode_subscription(blob(facts.SUBSCRIPTION, SUBSCRIPTION, 0, declared=1), "consumer", "range")
    assert (1, ["orders", "returns"], None) == (found["version"], found["topics"], found["ownedPartitions"])


def test_a_newer_version_is_read_as_the_newest_known():
    raw = blob(facts.SUBSCRIPTION, SUBSCRIPTION, 3, declared=9) + b"of a later version"
    newest = decode_subscription(blob(facts.SUBSCRIPTION, SUBSCRIPTION, 3), "consumer", "range")
    assert newest | {"version": 9} == decode_subscription(raw, "consumer", "range")
    assignment = blob(facts.ASSIGNMENT, {"partitions": OWNED, "userData": None}, 0, declared=7) + b"more"
    assert {"orders": [0, 3], "returns": []} == decode_assignment(assignment, "consumer", "range")["partitions"]


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_has_one_layout_in_all_versions(version):
    raw = blob(facts.ASSIGNMENT, {"partitions": OWNED, "userData": b"\x01\x02"}, version)
    assert {
        "version": version,
        "partitions": {"orders": [0, 3], "returns": []},
        "userData": {"opaque": True, "size": 2, "sha256": "a12871fee210fb86"},
        "userDataLayout": "unknown",
        "userDataSize": 2,
    } == decode_assignment(raw, "consumer", "own-assignor")


@pytest.mark.parametrize("protocol_type", ["consumer", "connect", "sr", "own", ""])
def test_a_member_that_the_leader_left_out_has_nothing(protocol_type):
    assert {} == decode_assignment(b"", protocol_type, "range")


def test_a_topic_stated_twice_has_all_its_partitions():
    raw = blob(facts.ASSIGNMENT, {"partitions": [*OWNED, {"topic": "orders", "partitions": [9]}], "userData": None}, 1)
    assert {"orders": [0, 3, 9], "returns": []} == decode_assignment(raw, "consumer", "range")["partitions"]


def test_a_sticky_client_of_old_states_no_generation():
    raw = blob(
        facts.SUBSCRIPTION, SUBSCRIPTION | {"userData": written(facts.TOPIC_PARTITIONS, OWNED, flexible=False)}, 0
    )
    found = decode_subscription(raw, "consumer", "sticky")["userData"]
    assert {"previousAssignment": {"orders": [0, 3], "returns": []}, "generation": None} == found


@pytest.mark.parametrize(
    ("protocol", "raw", "reason"),
    [
        ("sticky", b"\x7f\xff\xff\xff", "invalid_length"),
        ("cooperative-sticky", b"\x00", "truncated"),
        ("stream", struct.pack(">i", 12), "unknown_version"),
        ("stream", struct.pack(">ii", 11, 11) + bytes(15), "truncated"),
    ],
)
def test_user_data_that_cannot_be_read_leaves_the_rest_readable(protocol, raw, reason):
    found = decode_subscription(blob(facts.SUBSCRIPTION, SUBSCRIPTION | {"userData": raw}, 3), "consumer", protocol)
    assert (["orders", "returns"], 41) == (found["topics"], found["generationId"])
    assert (True, len(raw), reason) == tuple(found["userData"][name] for name in ("opaque", "size", "reason"))


def test_streams_asks_for_its_next_probing_rebalance():
    """AssignmentInfo v11 with an empty end: the error and the time are the last bytes, whatever hosts stand before."""
    user_data = struct.pack(">iiii", 11, 11, 0, 0) + b"any hosts" + struct.pack(">iq", 2, 1_795_246_067_091)
    raw = blob(facts.ASSIGNMENT, {"partitions": [], "userData": user_data}, 0)
    found = decode_assignment(raw, "consumer", "stream")["userData"]
    assert (2, 1_795_246_067_091) == (found["errorCode"], found["nextRebalanceMs"])


@pytest.mark.parametrize("version", range(3))
def test_a_connect_worker_has_what_its_version_has(version):
    running = blob(facts.CONNECT_ASSIGNMENT, CONNECT_ASSIGNMENT, version)
    declared = {"url": "http://a:8083/", "configOffset": 12, "allocation": running}
    expected = {"version": version} | CONNECT_ASSIGNMENT | {"assignment": {"sink": [-1, 0]}, "revoked": {"sink": [1]}}
    expected |= {"revoked": None, "delay": None} if version == 0 else {}
    assert expected == decode_assignment(running, "connect", "sessioned")
    found = decode_subscription(blob(facts.CONNECT_SUBSCRIPTION, declared, version), "connect", "sessioned")
    assert {"version": version, "url": "http://a:8083/", "configOffset": 12} | {
        "allocation": expected if version else None
    } == found


def test_connect_blobs_may_end_before_the_newer_fields():
    found = decode_assignment(blob(facts.CONNECT_ASSIGNMENT, CONNECT_ASSIGNMENT, 0, declared=2), "connect", "sessioned")
    assert ({"sink": [-1, 0]}, None, None) == (found["assignment"], found["revoked"], found["delay"])
    declared = {"url": "u", "configOffset": 1, "allocation": None}
    assert decode_subscription(blob(facts.CONNECT_SUBSCRIPTION, declared, 2), "connect", "x")["allocation"] is None


def test_a_connect_allocation_that_cannot_be_read_leaves_the_rest_readable():
    declared = {"url": "u", "configOffset": 1, "allocation": b"\x00\x02\x00"}
    found = decode_subscription(blob(facts.CONNECT_SUBSCRIPTION, declared, 2), "connect", "sessioned")
    assert ("u", "truncated") == (found["url"], found["allocation"]["reason"])


def test_a_schema_registry_states_json():
    identity = {
        "version": 1,
        "host": "sr-1",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "leader": False,
    }
    assignment = {"version": 1, "error": 0, "master": "m-1", "master_identity": identity}
    assert identity == decode_subscription(json.dumps(identity).encode(), "sr", "v0")
    assert assignment == decode_assignment(json.dumps(assignment).encode(), "sr", "v0")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"\xff\xfe\x00",
        b'{"host": "\\ud800"}',
        b'{"port": NaN}',
        b'{"port": 1e999}',
        b'{"port": ' + b"9" * 5000 + b"}",
        b'{"host": ' + b"[" * 100_000,
        b'{"host": ' + b'{"a":' * 60 + b"[[[[[[" + b"]]]]]]" + b"}" * 61,
    ],
    ids=range(11),
)
def test_json_that_no_registry_writes_is_opaque(raw):
    found = decode_subscription(raw, "sr", "v0")
    assert (True, len(raw), "invalid_value") == (found["opaque"], found["size"], found["reason"])


def test_json_cannot_pass_for_another_protocol():
    raw = b'{"version": 1, "topics": 5, "ownedPartitions": 7, "generationId": "x", "partitions": [], "opaque": 1}'
    assert {"version": 1} == decode_subscription(raw, "sr", "v0")
    assert {"version": 1} == decode_assignment(raw, "sr", "v0")


def test_an_unknown_protocol_keeps_size_and_hash():
    expected = {"opaque": True, "size": 3, "sha256": "ba7816bf8f01cfea"}
    assert expected == decode_subscription(b"abc", "own", "p") == decode_assignment(b"abc", "own", None)


@settings(derandomize=True, max_examples=500)
@given(
    st.sampled_from(("consumer", "connect", "sr", "own")),
    st.sampled_from(("range", "sticky", "cooperative-sticky", "stream", None)),
    st.binary(max_size=80),
    st.binary(max_size=80),
)
def test_no_blob_spoils_its_record(protocol_type, protocol, subscription, assignment):
    layout = KINDS[2].versions[3].layouts[0]
    member = {"memberId": "m", "groupInstanceId": None, "clientId": "c", "clientHost": "/h"}
    member |= {"rebalanceTimeout": 1, "sessionTimeout": 2, "subscription": subscription, "assignment": assignment}
    group = {"protocolType": protocol_type, "generation": 1, "protocol": protocol, "leader": "m"}
    group |= {"currentStateTimestamp": 5, "members": [member]}
    decoded = decode_record(*record(2, 3, layout, {"group": "g"}, group))
    found = decoded.body["value"]["members"][0]
    assert ("m", 2) == (found["memberId"], found["sessionTimeout"])
    json.dumps(decoded.body, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("version", range(1, 12))
@settings(derandomize=True, max_examples=10)
@given(data=st.data())
def test_streams_subscriptions_read_back(version, data):
    fields = [field for field in facts.STREAMS_SUBSCRIPTION if field.since <= version <= field.until]
    declared = {field.name: data.draw(values(field.type)) for field in fields}
    raw = struct.pack(">i", version) + b"".join(written(f.type, declared[f.name], flexible=False) for f in fields)
    found = decode_subscription(blob(facts.SUBSCRIPTION, SUBSCRIPTION | {"userData": raw}, 3), "consumer", "stream")
    texts = {"userEndPoint", "clientTags"}
    assert {"version": version} | {n: v for n, v in declared.items() if n not in texts} == {
        name: value for name, value in found["userData"].items() if name not in texts
    }
