"""Advice recommends only what the group's client libraries offer, in their own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelines.gold.advice.config_snippets import faster_heartbeats, longer_polls, preconditions, settings
from pipelines.gold.advice.latencies import BrokerSettings, Latencies, latencies
from pipelines.gold.churn import churn
from schemas.client_libraries import FACTS
from schemas.client_settings import SPELLINGS
from schemas.states import AdviceAction
from schemas.states import ClientLibrary as Library
from tests.gold.histories import EagerGroup
from tests.gold.test_advice import QUIET_MS, advice

A = AdviceAction
OF_CLIENTS = (A.STATIC_MEMBERSHIP, A.COOPERATIVE_ASSIGNOR, A.CONSUMER_PROTOCOL, A.CONSUMER_PROTOCOL_STATIC)
OFFERED = {
    A.STATIC_MEMBERSHIP: lambda facts: facts.static_membership,
    A.COOPERATIVE_ASSIGNOR: lambda facts: facts.cooperative,
    A.CONSUMER_PROTOCOL: lambda facts: facts.consumer_protocol,
    A.CONSUMER_PROTOCOL_STATIC: lambda facts: facts.consumer_protocol,
}


def libraries(*names: Library) -> frozenset[Library]:
    return frozenset(names)


def of(*names: Library, broker: BrokerSettings | None = None) -> Latencies:
    """The latencies of a small group, as if its clients were of these libraries."""
    return replace(latencies(EagerGroup().silver(), broker or BrokerSettings()), libraries=libraries(*names))


def every_snippet(library: Library) -> dict[str, str]:
    found = {}
    for action in A:
        found |= {f"{action} {target}": text for target, text in settings(action, of(library), 45_000).items()}
    for name, texts in (
        ("heartbeat", faster_heartbeats(1_000, libraries(library))),
        ("polls", longer_polls(900_000, libraries(library))),
    ):
        found |= {f"{name} {target}": text for target, text in texts.items()}
    return found


@pytest.mark.parametrize("library", FACTS)
def test_snippets_are_complete_and_of_this_library_only(library) -> None:
    mine = {target for target, (of, _) in SPELLINGS.items() if of == library} | {"kubernetes", "broker"}
    for name, text in every_snippet(library).items():
        assert name.split()[1] in mine
        assert "{ms}" not in text
        assert "{{" not in text.replace("${{", "")
        assert text.count("{") == text.count("}")
        assert text.count("(") == text.count(")")


@pytest.mark.parametrize("library", FACTS)
@pytest.mark.parametrize("action", OF_CLIENTS)
def test_a_library_has_a_snippet_for_exactly_what_it_offers(action, library) -> None:
    has_snippet = bool(settings(action, of(library)).keys() & SPELLINGS.keys())
    # Streams keeps its own assignor and protocol.
    assert has_snippet == (OFFERED[action](FACTS[library]) is not None)


def conditions(action: AdviceAction, *names: Library) -> list[str]:
    group = EagerGroup()
    group.restarts(0, 60_000, 9_000)
    return [str(each) for each in preconditions(action, churn(group.silver(), QUIET_MS), of(*names))]


@pytest.mark.parametrize("library", FACTS)
@pytest.mark.parametrize("action", OF_CLIENTS)
def test_what_a_library_lacks_is_a_missing_condition(action, library) -> None:
    missing = [each for each in conditions(action, library) if each.startswith("missing") and library in each]
    assert bool(missing) == (OFFERED[action](FACTS[library]) is None)


def test_one_library_that_lacks_it_is_enough() -> None:
    found = conditions(A.STATIC_MEMBERSHIP, Library.JAVA, Library.KAFKAJS)
    assert "missing: static membership, which kafkajs does not offer" in found


def test_without_a_known_library_the_condition_lists_those_that_offer_it() -> None:
    (found,) = (each for each in conditions(A.CONSUMER_PROTOCOL) if "a client with" in each)
    assert found == (
        "unknown: a client with the consumer protocol: confluent-kafka-javascript 1.6 or newer, franz-go 1.22 or newer, "
        "java 4.0 or newer, librdkafka 2.12 or newer"
    )


def restarting(library: Library) -> EagerGroup:
    """A group that loses much by restarts, as if its clients were of this library."""
    group = EagerGroup(members=10, partitions=50, notice_ms=2_800, callback_ms=20_000)
    for index in range(10):
        group.restarts(index, 100_000 + index * 100_000, 60_000)
    for row in group.rows["generation_members"]:
        row["client_library"] = library
    return group


def test_nothing_that_kafkajs_lacks_is_recommended_for_it() -> None:
    java, kafkajs = (advice(restarting(library)) for library in (Library.JAVA, Library.KAFKAJS))
    assert java["static_membership"]["is_recommended"]
    for action in OF_CLIENTS:
        assert not kafkajs[action]["is_recommended"]
        assert {} == kafkajs[action]["settings"]
        assert any(each.startswith("missing:") for each in kafkajs[action]["preconditions"])
    assert {"kafkajs"} == kafkajs["lower_heartbeat_interval"]["settings"].keys()
    assert "heartbeatInterval: 1000" in kafkajs["lower_heartbeat_interval"]["settings"]["kafkajs"]


def test_the_broker_gets_the_values_that_the_prediction_used() -> None:
    observed = of(Library.JAVA, broker=BrokerSettings(heartbeat_ms=1_000, session_ms=8_000))
    text = settings(A.CONSUMER_PROTOCOL, observed)["broker"]
    assert "heartbeat.interval.ms=1000" in text
    assert "session.timeout.ms=8000" in text
    assert "heartbeat.interval.ms=5000" in settings(A.CONSUMER_PROTOCOL, of(Library.JAVA))["broker"]
