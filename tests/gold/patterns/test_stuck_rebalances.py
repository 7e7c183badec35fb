"""A rebalance that does not complete: whom it waits for, which timeout ends it, and what is not known."""

from __future__ import annotations

import json

import pytest

from schemas.silver import GENERATION_MEMBERS
from schemas.written import instant
from testing.alerts.rows import MINUTE, NOW
from tests.gold.patterns.clusters import SECOND, ClusterRows

PATTERN = "stuck_rebalance"
SINCE = NOW - 4 * MINUTE
INVALID = ("²", "", "many", "-1", "9" * 5_000, 2**70, 1e300, None)
"""Values that anyone who may write to the events topic can give a setting of the brokers."""


@pytest.fixture
def described(tmp_path) -> ClusterRows:
    return ClusterRows(tmp_path)


def opened(described: ClusterRows, state: str = "PreparingRebalance", since: int = SINCE, **values) -> None:
    fields = {"state": state, "state_since_at": since, "open_rebalance_since_at": since}
    described.group("orders", 7, **fields | values)


def test_whom_a_group_waits_for_is_reported_with_host_and_timeout(described) -> None:
    opened(described)
    described.line(
        SINCE, "preparing", group_id="orders", trigger="leader_rejoined", member_id="orders-0-id", reason="re-joining"
    )
    described.line(SINCE + 45 * SECOND, "session_expired", group_id="orders", member_id="orders-2-id")
    (row,) = described.found(PATTERN)
    assert ("orders", ["orders"], SINCE, None) == (
        row["subject"], row["group_ids"], row["started_at"], row["ended_at"],
    )  # fmt: skip
    assert (["orders-1", "/10.0.0.1"], "bounded", ["log", "topic"]) == (
        row["instances"], row["evidence"], row["sources"],
    )  # fmt: skip
    assert "It waits for orders-1 at /10.0.0.1, the only member of the last generation" in row["explanation"]
    assert "5 min, that of orders-0 (max.poll.interval.ms of a Java consumer)" in row["explanation"]
    assert f"which is at {instant(SINCE + 300_000)}" in row["explanation"]
    assert "its session of 45 s ends" in row["explanation"]


def test_several_candidates_are_named_as_candidates(described) -> None:
    opened(described)
    described.line(
        SINCE, "preparing", group_id="orders", trigger="member_joined", member_id="new", reason="Adding new member"
    )
    described.line(SINCE, "member_added", group_id="orders", member_id="new")
    (row,) = described.found(PATTERN)
    assert "one or more of 3 members of the last generation: orders-0 at /10.0.0.0, orders-1" in row["explanation"]
    assert "does not name those that have rejoined. 1 new member joined and waits." in row["explanation"]
    assert "inferred" == row["evidence"]


def test_members_of_an_attempt_that_a_newcomer_ended_are_waited_for_again(described) -> None:
    opened(described, members=1)
    added = "orders-{}-0a1b2c3d-0000-4000-8000-00000000000{}"
    for at, number in ((SINCE, 7), (SINCE + SECOND, 8)):
        described.line(at, "member_added", group_id="orders", member_id=added.format(number, number))
    described.line(SINCE + 20 * SECOND, "left", group_id="orders", member_id="orders-0-id")
    described.line(SINCE + 20 * SECOND, "stabilized", group_id="orders", generation_id=5)
    described.line(SINCE + 22 * SECOND, "member_added", group_id="orders", member_id=added.format(9, 9))
    described.line(
        SINCE + 22 * SECOND, "preparing", group_id="orders", trigger="member_joined", member_id=added.format(9, 9)
    )
    (row,) = described.found(PATTERN)
    assert ["orders-7", "orders-8"] == row["instances"]
    assert "of the attempts since then: orders-7, orders-8." in row["explanation"]
    assert "1 new member joined and waits." in row["explanation"]
    assert f"which is at {instant(SINCE + 22 * SECOND + 300_000)}" in row["explanation"]


def test_a_join_phase_that_found_nobody_begins_again(described) -> None:
    opened(described, since=NOW - 12 * MINUTE)
    described.line(NOW - 7 * MINUTE, "could_not_complete", group_id="orders")
    (row,) = described.found(PATTERN)
    assert f"which is at {instant(NOW - 2 * MINUTE)}" in row["explanation"]


def test_the_leader_that_never_synced_is_named(described) -> None:
    opened(described, "CompletingRebalance")
    described.line(
        SINCE, "preparing", group_id="orders", trigger="member_left", member_ids=["orders-2-id"], reason="left"
    )
    described.line(SINCE + 2 * SECOND, "stabilized", group_id="orders", generation_id=5)
    (row,) = described.found(PATTERN)
    assert "waits for its leader, orders-0 at /10.0.0.0 (the leader of the last generation)," in row["explanation"]
    assert f"ends it at {instant(SINCE + 2 * SECOND + 300_000)}" in row["explanation"]
    assert (["orders-0", "/10.0.0.0"], "inferred") == (row["instances"], row["evidence"])


def test_a_leader_that_the_log_elected_is_the_one(described) -> None:
    opened(described, "CompletingRebalance")
    described.line(
        SINCE, "leader_replaced", group_id="orders", leader_member_id="orders-1-id", replaced_member_id="orders-0-id"
    )
    (row,) = described.found(PATTERN)
    assert ("observed", ["orders-1", "/10.0.0.1"]) == (row["evidence"], row["instances"])


def test_what_is_not_known_is_shown(described) -> None:
    opened(described, members=0)
    (row,) = described.found(PATTERN)
    assert "The last generation is not known, so whom it waits for is not known." in row["explanation"]
    assert "Which timeout ends it is not known" in row["explanation"]
    assert [] == row["instances"]


def test_members_of_a_new_group_that_have_not_reached_their_epoch_are_known(described) -> None:
    opened(described, "Reconciling", group_protocol="consumer")
    described.rows[GENERATION_MEMBERS][0]["reconciled_at"] = SINCE
    described.rows[GENERATION_MEMBERS][1]["reconciled_at"] = SINCE
    (row,) = described.found(PATTERN)
    assert ("observed", ["orders-2", "/10.0.0.2"]) == (row["evidence"], row["instances"])
    assert "1 member did not reach epoch 4 yet: orders-2 at /10.0.0.2." in row["explanation"]
    assert "group.consumer.session.timeout.ms, Kafka's default" in row["explanation"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (12_000, "its session of 12 s ends (group.consumer.session.timeout.ms)"),
        ("12000", "its session of 12 s ends (group.consumer.session.timeout.ms)"),
        *((bad, "its session of 45 s ends (group.consumer.session.timeout.ms, Kafka's default)") for bad in INVALID),
    ],
)
def test_the_session_is_that_of_the_brokers_unless_a_message_gives_no_number(described, value, says) -> None:
    opened(described, "Reconciling", group_protocol="consumer")
    settings = {"group.consumer.session.timeout.ms": value, "min.insync.replicas": value}
    described.poll(SINCE, "broker_settings", "1", json.dumps({"settings": settings}))
    (row,) = described.found(PATTERN)
    assert says in row["explanation"]


def test_polls_alone_show_a_rebalance_that_lasts(described) -> None:
    described.group("orders", 7)
    for at, state in (
        (NOW - 20 * MINUTE, "Stable"),
        (SINCE, "PreparingRebalance"),
        (NOW - MINUTE, "PreparingRebalance"),
    ):
        described.poll(at, "group", "orders", json.dumps({"group_id": "orders", "state": state}))
    described.poll(NOW, "reassignments", "", "{}")
    (row,) = described.found(PATTERN)
    assert (SINCE, ["poll", "topic"]) == (row["started_at"], row["sources"])
    assert "or for members that joined since then: without the coordinator's log" in row["explanation"]
    described.poll(NOW, "group", "orders", json.dumps({"group_id": "orders", "state": "Stable"}))
    assert [] == described.found(PATTERN)


def test_a_rebalance_of_some_seconds_is_not_stuck(described) -> None:
    opened(described, since=NOW - 30 * SECOND)
    assert [] == described.found(PATTERN)
