"""`generation_members` keeps the signs of a member's client library: version, owned field, rack, user data layout."""

from __future__ import annotations

from pipelines.decoding.member_blobs import decode_assignment, decode_subscription
from tests.silver import group_records
from tests.silver.handmade import consumer, generation, member, rows, worker, workers

LIBRARIES = {
    "franz-go": "0003 00000001 0001 74 00000004 00000000 00000000 ffffffff ffff",
    "java": "0003 00000001 0001 74 00000004 00000007 00000000 00000007 0002 6575",
    "kafka-go": "0001 00000001 0001 74 ffffffff",
    "kafkajs": "0000 00000001 0001 74 00000000",
    "librdkafka": "0003 00000001 0001 74 00000008 00000000 00000002 00000001 0001 74 00000001 00000000 00000002 0000",
}
COLUMNS = ("subscription_version", "subscription_rack", "user_data_layout")


def test_each_library_leaves_its_own_marks() -> None:
    assignment = decode_assignment(bytes.fromhex("0000 00000000 ffffffff"), "consumer", "cooperative-sticky")
    joined = [
        member(name, decode_subscription(bytes.fromhex(raw), "consumer", "cooperative-sticky"), assignment)
        for name, raw in LIBRARIES.items()
    ]
    found = rows([generation(1, 0, joined, protocol="cooperative-sticky")])["generation_members"]
    assert {
        "franz-go": (3, None, "ambiguous", []),
        "java": (3, "eu", "java_generation", []),
        "kafka-go": (1, None, "empty", None),
        "kafkajs": (0, None, "empty", None),
        "librdkafka": (3, "", "sticky", [{"name": "t", "index": 0}]),
    } == {row["client_id"]: (*(row[name] for name in COLUMNS), row["owned"]) for row in found}


def test_records_that_an_earlier_regroup_decoded_have_no_layout() -> None:
    (row,) = rows([generation(1, 0, [consumer("a", [0])])])["generation_members"]
    assert [None, None, None] == [row[name] for name in COLUMNS]


def test_connect_workers_have_no_subscription_of_a_consumer() -> None:
    (row,) = rows([workers(1, 0, worker("a", ran={"sink": [0]}))])["generation_members"]
    assert [None, None, None] == [row[name] for name in COLUMNS]


def test_members_of_a_consumer_group_have_no_classic_subscription() -> None:
    g = group_records
    script = g.Script().at(0, g.member("a"), g.epoch(2), g.target("a", 0), g.target_epoch(2), g.current("a", 2, 0))
    (row,) = script.rows()["generation_members"]
    assert [None, None, None] == [row[name] for name in COLUMNS]
