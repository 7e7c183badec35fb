"""A partition of `__consumer_offsets` that is down is one incident for all of its groups, and a healthy failover none."""

from __future__ import annotations

import json
from random import Random

import pytest

from testing.alerts.rows import MINUTE, NOW
from tests.gold.patterns.clusters import DOWN, SECOND, ClusterRows

PATTERN = "offsets_partition_down"
BEGAN = NOW - 30 * MINUTE
REASON = "Unknown record type 42"


@pytest.fixture
def described(tmp_path) -> ClusterRows:
    described = ClusterRows(tmp_path)
    described.group("orders", DOWN)
    described.group("billing", DOWN)
    described.group("deleted", DOWN, is_deleted=True)
    described.group("audit", 8)
    return described


def topic(
    at: int,
    described: ClusterRows,
    leader: int = 1,
    isr: tuple[int, ...] = (1, 2, 3),
    replicas: tuple[int, ...] = (1, 2, 3),
) -> None:
    healthy = {"replicas": [1, 2, 3], "leader": 2, "isr": [1, 2, 3]}
    partitions = [{"partition": n} | healthy for n in range(50)]
    partitions[DOWN] |= {"leader": leader, "isr": list(isr), "replicas": list(replicas)}
    described.poll(
        at, "topic", "__consumer_offsets", json.dumps({"topic": "__consumer_offsets", "partitions": partitions})
    )


def test_a_failed_load_is_one_incident_of_every_group_of_the_partition(described) -> None:
    described.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    (row,) = described.found(PATTERN)
    assert ("__consumer_offsets-7", BEGAN, None) == (row["subject"], row["started_at"], row["ended_at"])
    assert ["billing", "orders"] == row["group_ids"]
    assert (["log"], "observed", ["broker 1"]) == (row["sources"], row["evidence"], row["instances"])
    assert f"Broker 1 could not load it: {REASON}." in row["explanation"]
    assert "Its 2 groups could not commit or rebalance: billing, orders." in row["explanation"]


def test_it_ends_when_another_broker_loads_the_partition(described) -> None:
    described.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    described.line(BEGAN + SECOND, "coordinator_loaded", source_partition=8, broker_id=2)
    described.line(BEGAN + 10 * MINUTE, "coordinator_loaded", source_partition=DOWN, broker_id=2)
    (row,) = described.found(PATTERN)
    assert BEGAN + 10 * MINUTE == row["ended_at"] == row["last_at"]


@pytest.mark.parametrize(
    ("kind", "broker"), [("coordinator_loaded", 2), ("coordinator_loaded", 1), ("coordinator_resigned", 1)]
)
def test_a_load_that_fails_because_the_leader_moves_on_is_a_healthy_failover(described, kind, broker) -> None:
    described.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    described.line(BEGAN + 3 * SECOND, kind, source_partition=DOWN, broker_id=broker)
    assert [] == described.found(PATTERN)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("coordinator_loading", "This server is not the leader for that topic-partition"),
        ("coordinator_loading", "the log does not exist"),
        ("coordinator_loading", "Coordinator loader is closed"),
        ("coordinator_resigned", REASON),
    ],
)
def test_a_load_that_had_to_fail_is_none_even_if_no_other_brokers_log_is_read(described, before, reason) -> None:
    described.line(BEGAN - 2 * SECOND, "coordinator_loading", source_partition=DOWN)
    described.line(BEGAN - SECOND, before, source_partition=DOWN)
    described.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=reason)
    assert [] == described.found(PATTERN)


def failed_appends(
    described: ClusterRows, times: int, every: int, reason: str | None = "The size of the current ISR"
) -> None:
    for number in range(times):
        described.line(BEGAN + number * every, "append_failed", source_partition=DOWN)
        described.line(BEGAN + number * every, "write_failed", source_partition=DOWN, reason=reason)


def test_appends_that_fail_again_and_again_are_one_incident_until_a_record_is_written(described) -> None:
    failed_appends(described, 100, 6 * SECOND)
    described.record(BEGAN + 12 * MINUTE, DOWN, "orders")
    (row,) = described.found(PATTERN)
    assert (BEGAN, BEGAN + 12 * MINUTE, 100) == (row["started_at"], row["ended_at"], row["times"])
    assert "100 writes failed, such as “The size of the current ISR”." in row["explanation"]


def test_rebalances_that_cannot_store_their_assignment_show_it_even_without_the_brokers_own_lines(described) -> None:
    for number in range(311):
        described.line(
            BEGAN + number * 5 * SECOND, "preparing", group_id="orders", trigger="assignment_failed",
            reason="error when storing group assignment during SyncGroup (member: m)",
        )  # fmt: skip
    (row,) = described.found(PATTERN)
    assert (311, ["billing", "orders"], None) == (row["times"], row["group_ids"], row["ended_at"])


@pytest.mark.parametrize(
    ("times", "every", "reason"),
    [
        (20, SECOND, "The request timed out."),
        (2, 2 * MINUTE, None),
        (100, 6 * SECOND, "This is not the correct coordinator."),
        (100, 6 * SECOND, "it is larger than the maximum batch size of 1048588 bytes"),
    ],
)
def test_a_short_series_or_another_error_is_no_incident(described, times, every, reason) -> None:
    for number in range(times):
        described.line(BEGAN + number * every, "write_failed", source_partition=DOWN, reason=reason)
    assert [] == described.found(PATTERN)


def test_too_few_replicas_in_sync_are_an_incident_and_a_shrunk_isr_alone_is_none(described) -> None:
    described.line(BEGAN - SECOND, "isr_shrinking", source_partition=DOWN, isr=[1])
    described.line(BEGAN - SECOND, "isr_shrinking", source_partition=8, isr=[1, 2])
    assert [] == described.found(PATTERN)
    described.line(BEGAN, "isr_under_min", source_partition=DOWN, isr=[1])
    described.line(BEGAN + 5 * MINUTE, "isr_updated", source_partition=DOWN, isr=[1, 2])
    (row,) = described.found(PATTERN)
    assert (BEGAN, BEGAN + 5 * MINUTE) == (row["started_at"], row["ended_at"])
    assert "Only 1 were in sync, fewer than min.insync.replicas" in row["explanation"]
    assert "Its in-sync replicas shrank to 1 at" in row["explanation"]


def test_a_rolling_restart_of_the_brokers_is_none(described) -> None:
    for broker in (1, 2, 3):
        at = BEGAN + broker * 5 * MINUTE
        described.line(at, "coordinator_resigned", source_partition=DOWN, broker_id=broker)
        described.line(at, "isr_shrinking", source_partition=DOWN, isr=[1, 2], broker_id=broker)
        described.line(at + SECOND, "coordinator_loading", source_partition=DOWN, broker_id=broker % 3 + 1)
        described.line(at + 2 * SECOND, "coordinator_loaded", source_partition=DOWN, broker_id=broker % 3 + 1)
        described.line(at + MINUTE, "isr_expanding", source_partition=DOWN, isr=[1, 2, 3], broker_id=broker % 3 + 1)
        topic(at + 15 * SECOND, described, leader=-1, isr=(1, 2))
        topic(at + 30 * SECOND, described, isr=(1, 2))
        topic(at + 75 * SECOND, described)
    assert [] == described.found(PATTERN)


def test_polls_show_a_partition_without_a_leader(described) -> None:
    topic(BEGAN - MINUTE, described)
    topic(BEGAN, described, leader=-1)
    described.poll(BEGAN + 20 * MINUTE, "reassignments", "", "{}")
    (row,) = described.found(PATTERN)
    assert (BEGAN, None, BEGAN + 20 * MINUTE) == (row["started_at"], row["ended_at"], row["last_at"])
    assert (["poll"], "bounded") == (row["sources"], row["evidence"])
    assert "Polls show no leader." in row["explanation"]
    topic(BEGAN + 21 * MINUTE, described)
    (row,) = described.found(PATTERN)
    assert BEGAN + 21 * MINUTE == row["ended_at"]


@pytest.mark.parametrize(("minimum", "is_down"), [("2", True), ("1", False), (None, False)])
def test_polls_show_too_few_replicas_only_if_the_setting_is_known(described, minimum, is_down) -> None:
    if minimum is not None:
        settings = {"topic": "__consumer_offsets", "settings": {"min.insync.replicas": minimum}}
        described.poll(BEGAN - MINUTE, "topic_settings", "__consumer_offsets", json.dumps(settings))
    topic(BEGAN, described, isr=(1,))
    described.poll(BEGAN + 20 * MINUTE, "reassignments", "", "{}")
    assert is_down == bool(described.found(PATTERN))


def test_a_partition_with_fewer_replicas_than_the_setting_needs_only_those_that_it_has(described) -> None:
    settings = {"topic": "__consumer_offsets", "settings": {"min.insync.replicas": "3"}}
    described.poll(BEGAN - MINUTE, "topic_settings", "__consumer_offsets", json.dumps(settings))
    topic(BEGAN, described, isr=(2,), replicas=(2,))
    described.poll(BEGAN + 20 * MINUTE, "reassignments", "", "{}")
    assert [] == described.found(PATTERN)


def test_a_leader_that_is_missing_later_is_named_although_replicas_were_missing_first(described) -> None:
    settings = {"topic": "__consumer_offsets", "settings": {"min.insync.replicas": "2"}}
    described.poll(BEGAN - MINUTE, "topic_settings", "__consumer_offsets", json.dumps(settings))
    topic(BEGAN, described, isr=(1,))
    topic(BEGAN + 5 * MINUTE, described, leader=-1, isr=())
    described.poll(BEGAN + 20 * MINUTE, "reassignments", "", "{}")
    (row,) = described.found(PATTERN)
    assert BEGAN == row["started_at"]
    assert "Polls show no leader." in row["explanation"]


def test_an_idle_cluster_shows_nothing(described) -> None:
    topic(BEGAN, described)
    described.line(BEGAN, "coordinator_loaded", source_partition=DOWN)
    assert [] == described.found()


def test_log_and_polls_together_are_one_incident(described) -> None:
    described.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    topic(BEGAN + 10 * SECOND, described, leader=-1)
    described.line(BEGAN + 9 * MINUTE, "coordinator_loaded", source_partition=DOWN, broker_id=2)
    topic(BEGAN + 10 * MINUTE, described)
    (row,) = described.found(PATTERN)
    assert (BEGAN, BEGAN + 10 * MINUTE, ["log", "poll"]) == (row["started_at"], row["ended_at"], row["sources"])


def test_the_order_of_rows_does_not_matter(described) -> None:
    failed_appends(described, 40, 6 * SECOND)
    described.line(BEGAN, "coordinator_load_failed", source_partition=8, reason=REASON)
    topic(BEGAN + MINUTE, described, leader=-1)
    topic(BEGAN + 9 * MINUTE, described)
    first = described.found()
    assert 2 == len(first)
    for rows in described.rows.values():
        Random(3).shuffle(rows)
    assert first == described.found()
