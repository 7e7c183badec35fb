"""The user data of every assignor reads in the layout that its library writes, and in no other."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.decoding.member_blobs import decode_assignment, decode_subscription
from pipelines.decoding.user_data import UserData, assignment_user_data, subscription_user_data
from schemas.member_blobs import ASSIGNMENT_LAYOUTS, SUBSCRIPTION_LAYOUTS, TOPIC_PARTITIONS
from schemas.states import QuarantineReason, UserDataLayout
from testing.records.writing import written

L = UserDataLayout
TOPICS = "00000002 0006 6f7264657273 00000002 00000000 00000003 0001 74 00000000"
"""Two topics: `orders` with partitions 0 and 3, and `t` without partitions."""
PREVIOUS = {"orders": [0, 3], "t": []}


def raw(text: str) -> bytes:
    return bytes.fromhex(text)


@pytest.mark.parametrize(
    ("assignor", "text", "layout", "content"),
    [
        # Java and sarama
        ("cooperative-sticky", "00000007", L.JAVA_GENERATION, {"generation": 7}),
        ("cooperative-sticky", "ffffffff", L.JAVA_GENERATION, {"generation": -1}),
        ("cooperative-sticky", "7fffffff", L.JAVA_GENERATION, {"generation": 2**31 - 1}),
        ("sticky", f"{TOPICS} 00000007", L.STICKY, {"previousAssignment": PREVIOUS, "generation": 7}),
        ("sticky", "00000000 ffffffff", L.STICKY, {"previousAssignment": {}, "generation": -1}),
        ("sticky", TOPICS, L.STICKY, {"previousAssignment": PREVIOUS, "generation": None}),
        # librdkafka and franz-go
        ("cooperative-sticky", f"{TOPICS} 00000007", L.STICKY, {"previousAssignment": PREVIOUS, "generation": 7}),
        ("cooperative-sticky", TOPICS, L.STICKY, {"previousAssignment": PREVIOUS, "generation": None}),
        ("cooperative-sticky", "00000000 00000002", L.STICKY, {"previousAssignment": {}, "generation": 2}),
        ("sticky", "00000000", L.STICKY, {"previousAssignment": {}, "generation": None}),
        # franz-go's first join, or Java's generation 0
        ("cooperative-sticky", "00000000", L.AMBIGUOUS, {"generation": None}),
        # kafka-python 3
        (
            "sticky",
            f"0001 {TOPICS} ffffffff",
            L.STICKY_INT16,
            {"version": 1, "previousAssignment": PREVIOUS, "generation": -1},
        ),
        ("sticky", "0001 00000000 00000005", L.STICKY_INT16, {"version": 1, "previousAssignment": {}, "generation": 5}),
        # kafka-go
        ("rack-affinity", "65752d7765737431c3a9", L.RACK, {"rack": "eu-west1é"}),
    ],
)
def test_a_layout_reads_as_its_library_meant(assignor, text, layout, content) -> None:
    assert UserData(layout, content) == subscription_user_data(raw(text), assignor)


@pytest.mark.parametrize("assignor", [*SUBSCRIPTION_LAYOUTS, "range", None])
@pytest.mark.parametrize("read", [subscription_user_data, assignment_user_data])
def test_null_and_no_bytes_are_empty(assignor, read) -> None:
    assert UserData(L.EMPTY) == read(None, assignor) == read(b"", assignor)


@pytest.mark.parametrize(
    ("assignor", "text", "reason"),
    [
        ("cooperative-sticky", "fffffffe", "invalid_length"),
        ("cooperative-sticky", "00", "truncated"),
        ("cooperative-sticky", "0000000700", "invalid_length"),
        ("cooperative-sticky", f"{TOPICS} fffffffe", "invalid_value"),
        ("cooperative-sticky", f"{TOPICS} 00000007 00", "trailing_bytes"),
        ("cooperative-sticky", "00000001 0001 74 00000001 ffffffff", "invalid_value"),
        ("cooperative-sticky", "00000001 0001 ff 00000000", "invalid_utf8"),
        ("cooperative-sticky", "00000001 0001 74 7fffffff", "invalid_length"),
        ("cooperative-sticky", f"0001 {TOPICS} 00000007", "invalid_length"),
        ("sticky", f"0002 {TOPICS} 00000007", "invalid_length"),
        ("sticky", f"0001 {TOPICS}", "invalid_length"),
        ("sticky", "00000007", "invalid_length"),
        ("rack-affinity", "ff", "invalid_utf8"),
    ],
)
def test_user_data_that_no_layout_takes_whole_is_unknown(assignor, text, reason) -> None:
    assert UserData(L.UNKNOWN, None, QuarantineReason(reason)) == subscription_user_data(raw(text), assignor)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "roundrobin_v2", "RoundRobinAssigner", "own", None])
def test_user_data_of_an_assignor_without_a_documented_layout_is_unknown_without_a_reason(assignor) -> None:
    assert UserData(L.UNKNOWN) == subscription_user_data(b"\x00\x00\x00\x07", assignor)
    assert UserData(L.UNKNOWN) == assignment_user_data(b"\x00\x00\x00\x07", assignor)


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_leader_that_repeats_the_blob_in_the_assignment_is_read(assignor) -> None:
    expected = UserData(L.STICKY, {"previousAssignment": PREVIOUS, "generation": 7})
    assert expected == assignment_user_data(raw(f"{TOPICS} 00000007"), assignor)


def test_only_documented_layouts_are_tried_in_an_assignment() -> None:
    assert L.UNKNOWN is assignment_user_data(raw("00000007"), "cooperative-sticky").layout
    assert L.UNKNOWN is assignment_user_data(b"eu", "rack-affinity").layout
    assert ASSIGNMENT_LAYOUTS.keys() <= SUBSCRIPTION_LAYOUTS.keys()


def test_a_large_blob_that_two_layouts_take_gives_no_generation() -> None:
    """An int16 1, one topic with 98,687 partitions, a generation; or 65,536 topics, the first with 385 partitions."""
    partitions = 98_687
    both = bytearray(16 + 4 * partitions)
    both[:12] = raw("0001 00000001 0000") + struct.pack(">i", partitions)
    assert L.STICKY_INT16 is subscription_user_data(bytes(both), "sticky").layout
    both[-8] = 3  # the length of the last topic's name in the plain layout
    assert UserData(L.AMBIGUOUS, {"generation": None}) == subscription_user_data(bytes(both), "sticky")


# --- round trips -----------------------------------------------------------------------------------------------------

PARTITIONS = st.lists(st.integers(0, 2**31 - 1), max_size=4)
ASSIGNED = st.dictionaries(st.text(min_size=1, max_size=12), PARTITIONS, max_size=4)
GENERATION = st.integers(-1, 2**31 - 1)
RARE = settings(derandomize=True, max_examples=150)


def sticky(assigned: dict[str, list[int]], generation: int | None) -> bytes:
    listed = [{"topic": topic, "partitions": numbers} for topic, numbers in assigned.items()]
    end = b"" if generation is None else struct.pack(">i", generation)
    return written(TOPIC_PARTITIONS, listed, flexible=False) + end


@RARE
@given(st.sampled_from(("sticky", "cooperative-sticky")), ASSIGNED, st.none() | GENERATION)
def test_sticky_reads_back(assignor, assigned, generation) -> None:
    found = subscription_user_data(sticky(assigned, generation), assignor)
    if assignor == "cooperative-sticky" and not assigned and generation is None:
        assert UserData(L.AMBIGUOUS, {"generation": None}) == found
    else:
        assert UserData(L.STICKY, {"previousAssignment": assigned, "generation": generation}) == found


@RARE
@given(ASSIGNED, GENERATION)
def test_sticky_behind_an_int16_reads_back(assigned, generation) -> None:
    expected = {"version": 1, "previousAssignment": assigned, "generation": generation}
    found = subscription_user_data(b"\x00\x01" + sticky(assigned, generation), "sticky")
    assert UserData(L.STICKY_INT16, expected) == found


@RARE
@given(GENERATION.filter(bool))
def test_javas_generation_reads_back(generation) -> None:
    found = subscription_user_data(struct.pack(">i", generation), "cooperative-sticky")
    assert UserData(L.JAVA_GENERATION, {"generation": generation}) == found


@RARE
@given(st.text(min_size=1, max_size=40))
def test_a_rack_reads_back(rack) -> None:
    assert UserData(L.RACK, {"rack": rack}) == subscription_user_data(rack.encode(), "rack-affinity")


@settings(derandomize=True, max_examples=600)
@given(st.sampled_from([*SUBSCRIPTION_LAYOUTS, "range"]), st.binary(max_size=60))
def test_any_bytes_leave_the_member_readable(assignor, user_data) -> None:
    head = b"\x00\x01" + written(["string"], ["t"], flexible=False) + written("bytes", user_data, flexible=False)
    found = decode_subscription(head, "consumer", assignor)
    assert (["t"], None, len(user_data)) == (found["topics"], found["ownedPartitions"], found["userDataSize"])
    assert found["userDataLayout"] in set(UserDataLayout)
    assert (found["userDataLayout"] == "unknown") == bool(found["userData"] and found["userData"].get("opaque"))
    given_out = decode_assignment(
        b"\x00\x00" + bytes(4) + written("bytes", user_data, flexible=False), "consumer", assignor
    )
    assert len(user_data) == given_out["userDataSize"]
    json.dumps([found, given_out], allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_a_count_beyond_the_bytes_allocates_nothing(assignor) -> None:
    for count in (2**31 - 1, 2**30, 65536):
        assert L.UNKNOWN is subscription_user_data(struct.pack(">i", count) + b"\x00" * 8, assignor).layout
