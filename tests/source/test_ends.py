"""A topic's ends are requested again while brokers come and go; any other error is raised, or named in a sentence."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from jobs import capture
from jobs.config.clusters import Cluster
from jobs.config.errors import PassingError, UserError
from jobs.kafka import kafka_client, kafka_source
from jobs.kafka.kafka_client import TopicEnds, topic_ends
from jobs.kafka.kafka_source import TopicStreamReader
from jobs.kafka.topic_streams import topics
from jobs.kafka.topic_watch import TopicWatch

ENDS = TopicEnds(topic_id="t", ends={0: (0, 7)})


@pytest.fixture
def answering(monkeypatch):
    """The broker responds with these errors, then with the ends."""

    def response(*codes: int) -> TopicEnds | None:
        responses = [KafkaException(KafkaError(code)) for code in codes]

        def ends(client, topic) -> TopicEnds:
            if responses:
                raise responses.pop(0)
            return ENDS

        monkeypatch.setattr(kafka_client, "_ends", ends)
        monkeypatch.setattr(kafka_client, "ASK_AGAIN_S", 0)
        monkeypatch.setattr(kafka_client, "ASK_ONCE_S", 0.01)
        return topic_ends(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}), "t")

    return response


@pytest.mark.parametrize("code", sorted(kafka_client.PASSING))
def test_what_passes_is_waited_for(answering, code) -> None:
    assert ENDS == answering(code, code)


def test_what_does_not_pass_is_reported(answering) -> None:
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        answering(KafkaError.TOPIC_AUTHORIZATION_FAILED)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sasl.mechanisim": "PLAIN"}, "No such configuration property"),
        ({"security.protocol": "ssl", "ssl.ca.location": "/absent.pem"}, "ssl.ca.location failed"),
    ],
)
@pytest.mark.parametrize("made", [kafka_client.cluster_id, kafka_client.admin, kafka_client.consumer])
def test_options_that_librdkafka_refuses_are_named_in_a_sentence(made, options, why) -> None:
    with pytest.raises(
        UserError, match=rf"^The Kafka options for 127\.0\.0\.1:1 cannot be used \(.*{why}.*\): correct"
    ):
        made({"bootstrap.servers": "127.0.0.1:1", **options})


@pytest.mark.parametrize("option", [{"sasl.mechanisim": "PLAIN"}, {"sasl.password": "file:/absent"}])
def test_the_watch_of_a_cluster_reports_options_that_cannot_be_used(option) -> None:
    seen = TopicWatch(Cluster(name="c", bootstrap_servers="127.0.0.1:1", kafka=option)).ask()
    assert seen.ends is None
    assert next(iter(option)) in seen.error


def test_a_topic_that_may_not_be_read_is_the_one_that_is_named(monkeypatch) -> None:
    def refuse(client, topic):
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    monkeypatch.setattr(kafka_source, "topic_ends", refuse)
    monkeypatch.setattr(capture, "topic_ends", refuse)
    cluster = Cluster(name="c", bootstrap_servers="127.0.0.1:1", events_topic="lines")
    for stream in topics(cluster, tasks=1):
        with pytest.raises(UserError, match=f"grant READ on topic {stream.topic}"):
            TopicStreamReader(stream).ends()
    with pytest.raises(UserError, match="grant READ on topic lines"):
        list(capture._described(cluster))


def test_a_broker_that_is_lost_at_the_end_of_a_capture_is_named(monkeypatch) -> None:
    monkeypatch.setattr(capture, "RESPONSE_WITHIN_S", 0.1)
    cluster = Cluster(name="c", bootstrap_servers="127.0.0.1:1")
    with pytest.raises(PassingError, match=r"No Kafka broker answers at 127\.0\.0\.1:1"):
        capture._meta(cluster, ENDS, started_ms=0, records=0, complete=True)
