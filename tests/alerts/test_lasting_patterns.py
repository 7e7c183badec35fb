"""Alerts about groups whose pattern lasts: when they hold, and when this is unknown."""

from __future__ import annotations

import pytest

from schemas.states import AlertName
from testing.alerts.rows import MINUTE, NOW, pattern
from tests.alerts.test_rules import DIM, found, verdict

IDLE = pattern("owner_not_working", "orders", ["orders"], times=2, evidence="inferred", sources=["poll", "topic"])
MISMATCH = pattern("connect_config_mismatch", "sink", ["sink"], sources=["topic"])


def test_an_owner_that_does_not_work_is_a_ticket_only_while_polls_are_fresh():
    assert [("KafkaOwnerNotWorking", "orders", "ticket")] == found(patterns=[IDLE])
    (alert,) = verdict(patterns=[IDLE]).alerts
    assert "Nobody works on 2 partitions of orders, although records wait" == alert.summary
    assert "It was down. Bring it back. Evidence: inferred." == alert.description
    for described in ({"polled_until_ms": NOW - 2 * MINUTE}, {"freshness": DIM}):
        old = verdict(patterns=[IDLE], **described)
        assert [] == old.alerts
        assert AlertName.OWNER_NOT_WORKING in old.unknown


@pytest.mark.parametrize(
    ("values", "is_raised"),
    [
        ({}, True),
        ({"started_at": NOW - MINUTE}, True),
        ({"started_at": NOW - 59_000}, False),
        ({"last_at": NOW - 10 * MINUTE}, True),
        ({"last_at": NOW - 11 * MINUTE}, False),
    ],
    ids=["lasts", "a minute", "a moment", "quiet", "no workers any more"],
)
def test_a_connect_cluster_without_work_pages_while_its_errors_go_on(values, is_raised):
    expected = [("KafkaConnectConfigMismatch", "sink", "page")] if is_raised else []
    assert expected == found(patterns=[MISMATCH | values])


def test_names_that_clients_chose_are_escaped():
    (alert,) = verdict(patterns=[MISMATCH | {"subject": "<b>sink</b>", "group_ids": ["<b>sink</b>"]}]).alerts
    assert "<b>" not in alert.summary
