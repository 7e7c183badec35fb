"""A topic's ends are requested again while brokers come and go; any other error is raised."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from jobs.kafka import kafka_client
from jobs.kafka.kafka_client import TopicEnds, topic_ends

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
