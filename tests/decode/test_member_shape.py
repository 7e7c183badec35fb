"""Members of real clients have the shape that their library is documented to write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.decoding.member_blobs import decode_assignment, decode_subscription
from pipelines.decoding.member_shape import MemberShape, member_shape
from pipelines.decoding.record_decoding import Decoded, decode_record
from schemas.states import UserDataLayout
from testing.records.samples import clients

CAPTURES = Path(__file__).parents[1] / "captures"
L = UserDataLayout
Seen = tuple[str, str, dict, MemberShape]
"""(protocol type, assignor, member, its shape)"""


def members(records: list[tuple[bytes, bytes | None]]) -> Iterator[Seen]:
    for key, value in records:
        decoded = decode_record(key, value)
        assert isinstance(decoded, Decoded), decoded
        if decoded.record_kind != "GroupMetadata" or decoded.is_tombstone:
            continue
        group = decoded.body["value"]
        for member in group["members"]:
            shape = member_shape(member["subscription"], member["assignment"])
            assert (shape is None) == (group["protocolType"] != "consumer")
            if shape is not None:
                yield group["protocolType"], group["protocol"], member, shape


def of(capture: str) -> list[MemberShape]:
    found = [shape for _, _, _, shape in members(clients(capture))]
    assert found
    return found


@pytest.mark.parametrize("capture", ["franz", "grow-franz", "quiet-franz"])
def test_franz_go_writes_the_sticky_layout_and_no_generation_at_first(capture) -> None:
    first = [shape for shape in of(capture) if shape.generation == -1]
    later = [shape for shape in of(capture) if shape.generation != -1]
    assert {(L.AMBIGUOUS, 4, None, 0)} == {
        (s.user_data_layout, s.user_data_size, s.user_data_generation, s.owned_partitions) for s in first
    }
    assert later
    # The user data names the generation that the subscription names too, or the one before.
    assert {L.STICKY} == {s.user_data_layout for s in later}
    assert {True} == {0 <= s.generation - s.user_data_generation <= 1 for s in later}
    assert {(3, None, 0, L.EMPTY, None)} == {
        (s.subscription_version, s.rack, s.assignment_version, s.assignment_layout, s.assignment_size)
        for s in of(capture)
    }


def test_kafka_go_ends_before_the_owned_partitions() -> None:
    assert {
        MemberShape(
            subscription_version=1, owned_partitions=None, generation=None, rack=None, user_data_layout=L.EMPTY,
            user_data_size=None, user_data_generation=None, assignment_version=1, assignment_layout=L.EMPTY,
            assignment_size=None,
        )
    } == set(of("kafkago"))  # fmt: skip


@pytest.mark.parametrize("capture", ["aiokafka", "kafkajs", "quiet-kafkajs"])
def test_aiokafka_and_kafkajs_write_version_0_with_no_bytes_of_user_data(capture) -> None:
    assert {(0, None, None, L.EMPTY, 0, 0, L.EMPTY, 0)} == {
        (
            s.subscription_version, s.owned_partitions, s.generation, s.user_data_layout, s.user_data_size,
            s.assignment_version, s.assignment_layout, s.assignment_size,
        )
        for s in of(capture)
    }  # fmt: skip


def test_sarama_writes_javas_generation_in_version_1() -> None:
    assert {(1, L.JAVA_GENERATION, 4, None)} == {
        (s.subscription_version, s.user_data_layout, s.user_data_size, s.rack) for s in of("sarama-coop")
    }
    assert {-1, 1} <= {s.user_data_generation for s in of("sarama-coop")}
    assert {0} < {s.owned_partitions for s in of("sarama-coop")}


@pytest.mark.parametrize("folder", sorted(CAPTURES.glob("*/offsets.parquet")), ids=lambda path: path.parent.name)
def test_every_recorded_member_has_the_shape_of_java_or_librdkafka(folder) -> None:
    """The lab has no other clients. librdkafka sends an empty rack and repeats its sticky blob in the assignment."""
    table = pq.read_table(folder, columns=["key", "value"])
    for _, assignor, member, shape in members(
        list(zip(*(table[n].to_pylist() for n in ("key", "value")), strict=True))
    ):
        assert (3, True) == (shape.subscription_version, shape.owned_partitions is not None)
        assert L.UNKNOWN not in (shape.user_data_layout, shape.assignment_layout), member
        is_librdkafka = shape.rack == ""
        if assignor in ("range", "roundrobin"):
            assert (L.EMPTY, 0 if is_librdkafka else None) == (shape.user_data_layout, shape.user_data_size)
        elif assignor == "stream":
            assert (L.STREAMS, None) == (shape.user_data_layout, shape.rack)
        elif is_librdkafka:
            assert assignor == "cooperative-sticky"
            assert shape.user_data_layout is (L.EMPTY if shape.generation == -1 else L.STICKY)
        elif assignor == "sticky":
            assert shape.user_data_layout is (L.EMPTY if shape.generation == -1 else L.STICKY)
        else:
            assert (L.JAVA_GENERATION, shape.generation) == (shape.user_data_layout, shape.user_data_generation)


def test_an_empty_rack_is_not_a_null_one() -> None:
    head = "0003 00000001 0001 74 ffffffff 00000000 ffffffff"
    racks = {"ffff": None, "0000": "", "0001 61": "a"}
    for text, rack in racks.items():
        subscription = decode_subscription(bytes.fromhex(f"{head} {text}"), "consumer", "range")
        shape = member_shape(subscription, {})
        assert (rack, 0, -1, None) == (shape.rack, shape.owned_partitions, shape.generation, shape.assignment_version)


def test_kafka_pythons_cooperative_member_has_empty_user_data_in_version_1() -> None:
    subscription = "0001 00000001 0001 74 00000000 00000001 0001 74 00000002 00000000 00000001"
    shape = member_shape(decode_subscription(bytes.fromhex(subscription), "consumer", "cooperative-sticky"), {})
    assert (1, 2, L.EMPTY, 0) == (
        shape.subscription_version, shape.owned_partitions, shape.user_data_layout, shape.user_data_size,
    )  # fmt: skip


def test_a_body_of_an_earlier_regroup_gives_no_layout_and_no_generation() -> None:
    stored = {"version": 3, "topics": ["t"], "userData": {"generation": 2}, "ownedPartitions": {}, "generationId": 4}
    shape = member_shape(stored, {"version": 0, "partitions": {}, "userData": None})
    assert (None, None, None, 4) == (
        shape.user_data_layout, shape.user_data_size, shape.user_data_generation, shape.generation,
    )  # fmt: skip
    assert L.UNKNOWN is member_shape(stored | {"userDataLayout": "of a newer Regroup"}, {}).user_data_layout


def test_members_that_are_no_consumers_have_no_shape() -> None:
    assert member_shape({"version": 2, "url": "u", "configOffset": 1, "allocation": None}, {}) is None
    assert member_shape(decode_subscription(b"\xff", "consumer", "range"), {}) is None
    assert member_shape({}, decode_assignment(b"", "consumer", "range")) is None
