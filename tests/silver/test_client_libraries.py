"""The library of a member is named if something shows it, and a wrong library is never named."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.decoding.member_shape import MemberShape, member_shape
from pipelines.decoding.record_decoding import Decoded, decode_record
from pipelines.silver.client_library import UNKNOWN, ClassicMember, consumer_library, of_record, with_group
from schemas.client_libraries import FACTS
from schemas.states import ClientLibrary as Library
from schemas.states import GroupProtocol, UserDataLayout
from testing.records.samples import clients
from tests.silver.handmade import broker_line, consumer, generation, member_id, rows

TRUE = {
    "aiokafka": Library.AIOKAFKA, "franz": Library.FRANZ_GO, "grow-franz": Library.FRANZ_GO,
    "quiet-franz": Library.FRANZ_GO, "kafkago": Library.KAFKA_GO, "kafkajs": Library.KAFKAJS,
    "quiet-kafkajs": Library.KAFKAJS, "sarama-coop": Library.SARAMA,
}  # fmt: skip


def recorded(capture: str, *, hidden: bool) -> Counter[Library]:
    """The libraries of a capture's members, generation by generation; `hidden`: with a client id of their own."""
    found: Counter[Library] = Counter()
    for key, value in clients(capture):
        decoded = decode_record(key, value)
        assert isinstance(decoded, Decoded)
        if decoded.record_kind != "GroupMetadata" or decoded.is_tombstone:
            continue
        group = decoded.body["value"]
        libraries = with_group({
            m["memberId"]: of_record(
                ClassicMember(
                    group["protocolType"], group["protocol"], "orders" if hidden else m["clientId"],
                    m["sessionTimeout"], m["rebalanceTimeout"], member_shape(m["subscription"], m["assignment"]),
                )
            )
            for m in group["members"]
        })  # fmt: skip
        found.update(each.library for each in libraries.values())
    return found


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("capture", TRUE)
def test_no_recorded_member_is_taken_for_another_library(capture, hidden) -> None:
    found = recorded(capture, hidden=hidden)
    assert {TRUE[capture], Library.UNKNOWN} >= set(found)


@pytest.mark.parametrize("capture", sorted(TRUE.keys() - {"sarama-coop"}))
def test_most_are_recognized_by_their_subscription_alone(capture) -> None:
    found = recorded(capture, hidden=True)
    assert found[TRUE[capture]] > 0.6 * found.total()


def shape(version: int, **more) -> MemberShape:
    known = {
        "subscription_version": version, "owned_partitions": 0 if version else None, "generation": None, "rack": None,
        "user_data_layout": UserDataLayout.EMPTY, "user_data_size": None, "user_data_generation": None,
        "assignment_version": 0, "assignment_layout": UserDataLayout.EMPTY, "assignment_size": None,
    }  # fmt: skip
    return MemberShape(**known | more)


def test_an_application_whose_name_begins_with_connect_is_no_connect_worker() -> None:
    for found, sent in ((Library.JAVA, shape(3)), (Library.AIOKAFKA, shape(0))):
        timeouts = (FACTS[found].session_ms, FACTS[found].rebalance_ms)
        assert found == of_record(ClassicMember("consumer", "range", "connect-gateway", *timeouts, sent)).library
    sink = of_record(ClassicMember("consumer", "range", "connector-consumer-orders-0", 45_000, 300_000, shape(3)))
    assert Library.CONNECT == sink.library
    assert Library.CONNECT == of_record(ClassicMember("connect", "sessioned", "c", 10_000, 60_000, None)).library


DEFAULTS = [
    (Library.JAVA, "range", shape(3)), (Library.LIBRDKAFKA, "range", shape(3, rack="")),
    (Library.CONFLUENT_KAFKA_JAVASCRIPT, "roundrobin", shape(3, rack="")), (Library.FRANZ_GO, "range", shape(3)),
    (Library.JAVA, "range", shape(2)), (Library.SARAMA, "range", shape(2)), (Library.SARAMA, "range", shape(1)),
    (Library.KAFKA_GO, "range", shape(1, owned_partitions=None)), (Library.AIOKAFKA, "roundrobin", shape(0)),
    (Library.KAFKA_PYTHON, "range", shape(0)), (Library.SARAMA, "range", shape(0)),
    (Library.RUBY_KAFKA, "roundrobin", shape(0)), (Library.KAFKAJS, "RoundRobinAssigner", shape(0)),
    (Library.BROD, "roundrobin_v2", shape(0)), (Library.KAFKA_PYTHON, "cooperative-sticky", shape(1)),
    (Library.STREAMS, "stream", shape(3)),
]  # fmt: skip


@pytest.mark.parametrize(("library", "assignor", "sent"), DEFAULTS)
def test_members_with_default_settings_are_recognized_whatever_their_client_id(library, assignor, sent) -> None:
    facts = FACTS[library]
    joined = ClassicMember("consumer", assignor, "orders-app", facts.session_ms, facts.rebalance_ms, sent)
    assert library == of_record(joined).library


@pytest.mark.parametrize("session_ms", [6_000, 10_000, 45_000])
def test_aiokafka_with_another_session_is_recognized_because_its_rebalance_timeout_follows(session_ms) -> None:
    joined = ClassicMember("consumer", "roundrobin", "orders-app", session_ms, session_ms, shape(0))
    assert (Library.AIOKAFKA, "inferred", "subscription") == of_record(joined)
    assert UNKNOWN == of_record(joined._replace(rebalance_timeout_ms=session_ms + 1))


IDS = {
    "rdkafka": Library.LIBRDKAFKA, "sarama": Library.SARAMA, "kgo": Library.FRANZ_GO, "kafkajs": Library.KAFKAJS,
    "aiokafka-0.14.0": Library.AIOKAFKA, "kafka-python-3.0.12": Library.KAFKA_PYTHON, "ruby-kafka": Library.RUBY_KAFKA,
    "kgo-importer@host-1 (github.com/segmentio/kafka-go)": Library.KAFKA_GO, "consumer-orders-1": Library.JAVA,
    "app-6ff4-StreamThread-1-consumer": Library.STREAMS, "connector-consumer-sink-0": Library.CONNECT,
    "'a@host'/<0.45.0>": Library.BROD,
}  # fmt: skip


@pytest.mark.parametrize("client_id", IDS)
def test_a_default_client_id_is_recognized_and_only_inferred(client_id) -> None:
    found = of_record(ClassicMember("consumer", "range", client_id, 1, 1, None))
    assert (IDS[client_id], "inferred", "client_id") == found


def test_a_client_id_that_the_subscription_contradicts_does_not_count() -> None:
    assert UNKNOWN == of_record(ClassicMember("consumer", "range", "kafkajs", 6_000, 7_000, shape(3)))
    java = of_record(ClassicMember("consumer", "range", "sarama", 45_000, 300_000, shape(3)))
    assert (Library.JAVA, "inferred", "subscription") == java


def test_a_reason_is_observed_and_counts_more_than_a_client_id() -> None:
    preparing = (
        "Preparing to rebalance group orders in state PreparingRebalance with old generation 1 (reason: Leader "
        f"{member_id('sarama')} re-joining group during Stable; client reason: after revoking what we lost from a "
        "rebalance)."
    )
    joined = [consumer("sarama", [0]), consumer("b", [1])]
    found = rows([generation(1, 0, joined), generation(2, 9_000, joined)], [broker_line(8_000, preparing)])
    signs = ("client_library", "client_library_evidence", "client_library_sign")
    assert {
        (1, "sarama"): ("sarama", "inferred", "client_id"),
        (1, "b"): ("sarama", "inferred", "group"),
        (2, "sarama"): ("franz-go", "observed", "reason"),
        (2, "b"): ("sarama", "inferred", "group"),
    } == {
        (row["generation_id"], row["client_id"]): tuple(row[name] for name in signs)
        for row in found["generation_members"]
    }


@pytest.mark.parametrize(
    ("made", "library"),
    [
        ("AZaz09-_AZaz09-_AZaz09==", Library.FRANZ_GO), ("AZaz09-_AZaz09-_AZaz0A", Library.JAVA),
        ("AZaz09+/AZaz09+/AZaz0A", Library.LIBRDKAFKA), ("AZaz0999AZaz0999AZaz0A", Library.UNKNOWN),
        ("AZaz09-/AZaz0999AZaz0A", Library.UNKNOWN),
    ],
)  # fmt: skip
def test_an_id_that_the_client_made_shows_the_library_by_its_alphabet(made, library) -> None:
    assert library == consumer_library(made, "orders-app", GroupProtocol.CONSUMER, None, 300_000).library


def test_unknown_members_are_taken_for_what_all_others_are_but_not_for_one_of_several() -> None:
    java, go = (of_record(ClassicMember("consumer", "range", name, 1, 1, None)) for name in ("consumer-a-1", "sarama"))
    alike = with_group({"a": java, "b": UNKNOWN})
    assert (Library.JAVA, "inferred", "group") == alike["b"]
    assert UNKNOWN == with_group({"a": java, "b": UNKNOWN, "c": go})["b"]


@given(st.text(), st.text(), st.sampled_from(GroupProtocol), st.none() | st.text(), st.none() | st.integers())
def test_no_name_stops_the_reading(made, client_id, protocol, assignor, timeout) -> None:
    assert consumer_library(made, client_id, protocol, assignor, timeout).library in Library
    assert of_record(ClassicMember("consumer", assignor, client_id, 1, timeout or 1, None)).library in Library
