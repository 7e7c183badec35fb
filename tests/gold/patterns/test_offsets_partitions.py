"""A partition of `__consumer_offsets` that is down is one incident for all of its groups, and a healthy failover none."""

from __future__ import annotations

import json
from random import Random

import pytest

from testing.alerts.rows import MINUTE, NOW
from tests.gold.patterns.clusters import DOWN, SECOND, Told

PATTERN = "offsets_partition_down"
BEGAN = NOW - 30 * MINUTE
REASON = "Unknown record type 42"


@pytest.fixture
def told(tmp_path) -> Told:
    told = Told(tmp_path)
    told.group("orders", DOWN)
    told.group("billing", DOWN)
    told.group("deleted", DOWN, is_deleted=True)
    told.group("audit", 8)
    return told


def topic(at: int, told: Told, leader: int = 1, isr: tuple[int, ...] = (1, 2, 3)) -> None:
    healthy = {"replicas": [1, 2, 3], "leader": 2, "isr": [1, 2, 3]}
    partitions = [{"partition": n} | healthy for n in range(50)]
    partitions[DOWN] |= {"leader": leader, "isr": list(isr)}
    told.poll(at, "topic", "__consumer_offsets", json.dumps({"topic": "__consumer_offsets", "partitions": partitions}))


def test_a_failed_load_is_one_incident_of_every_group_of_the_partition(told) -> None:
    told.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    (row,) = told.found(PATTERN)
    assert ("__consumer_offsets-7", BEGAN, None) == (row["subject"], row["started_at"], row["ended_at"])
    assert ["billing", "orders"] == row["group_ids"]
    assert (["log"], "observed", ["broker 1"]) == (row["sources"], row["evidence"], row["instances"])
    assert f"Broker 1 could not load it: {REASON}." in row["explanation"]
    assert "Its 2 groups could not commit or rebalance: billing, orders." in row["explanation"]


def test_it_ends_when_another_broker_loads_the_partition(told) -> None:
    told.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    told.line(BEGAN + SECOND, "coordinator_loaded", source_partition=8, broker_id=2)
    told.line(BEGAN + 10 * MINUTE, "coordinator_loaded", source_partition=DOWN, broker_id=2)
    (row,) = told.found(PATTERN)
    assert BEGAN + 10 * MINUTE == row["ended_at"] == row["last_at"]


@pytest.mark.parametrize(
    ("kind", "broker"), [("coordinator_loaded", 2), ("coordinator_loaded", 1), ("coordinator_resigned", 1)]
)
def test_a_load_that_fails_because_the_leader_moves_on_is_a_healthy_failover(told, kind, broker) -> None:
    told.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    told.line(BEGAN + 3 * SECOND, kind, source_partition=DOWN, broker_id=broker)
    assert [] == told.found(PATTERN)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("coordinator_loading", "This server is not the leader for that topic-partition"),
        ("coordinator_loading", "the log does not exist"),
        ("coordinator_loading", "Coordinator loader is closed"),
        ("coordinator_resigned", REASON),
    ],
)
def test_a_load_that_had_to_fail_is_none_even_if_no_other_brokers_log_is_read(told, before, reason) -> None:
    told.line(BEGAN - 2 * SECOND, "coordinator_loading", source_partition=DOWN)
    told.line(BEGAN - SECOND, before, source_partition=DOWN)
    told.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=reason)
    assert [] == told.found(PATTERN)


def failed_appends(told: Told, times: int, every: int, reason: str | None = "The size of the current ISR") -> None:
    for number in range(times):
        told.line(BEGAN + number * every, "append_failed", source_partition=DOWN)
        told.line(BEGAN + number * every, "write_failed", source_partition=DOWN, reason=reason)


def test_appends_that_fail_again_and_again_are_one_incident_until_a_record_is_written(told) -> None:
    failed_appends(told, 100, 6 * SECOND)
    told.record(BEGAN + 12 * MINUTE, DOWN, "orders")
    (row,) = told.found(PATTERN)
    assert (BEGAN, BEGAN + 12 * MINUTE, 100) == (row["started_at"], row["ended_at"], row["times"])
    assert "100 writes failed, such as “The size of the current ISR”." in row["explanation"]


def test_rebalances_that_cannot_store_their_assignment_show_it_even_without_the_brokers_own_lines(told) -> None:
    for number in range(311):
        told.line(
            BEGAN + number * 5 * SECOND, "preparing", group_id="orders", trigger="assignment_failed",
            reason="error when storing group assignment during SyncGroup (member: m)",
        )  # fmt: skip
    (row,) = told.found(PATTERN)
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
def test_a_short_series_or_another_error_is_no_incident(told, times, every, reason) -> None:
    for number in range(times):
        told.line(BEGAN + number * every, "write_failed", source_partition=DOWN, reason=reason)
    assert [] == told.found(PATTERN)


def test_too_few_replicas_in_sync_are_an_incident_and_a_shrunk_isr_alone_is_none(told) -> None:
    told.line(BEGAN - SECOND, "isr_shrinking", source_partition=DOWN, isr=[1])
    told.line(BEGAN - SECOND, "isr_shrinking", source_partition=8, isr=[1, 2])
    assert [] == told.found(PATTERN)
    told.line(BEGAN, "isr_under_min", source_partition=DOWN, isr=[1])
    told.line(BEGAN + 5 * MINUTE, "isr_updated", source_partition=DOWN, isr=[1, 2])
    (row,) = told.found(PATTERN)
    assert (BEGAN, BEGAN + 5 * MINUTE) == (row["started_at"], row["ended_at"])
    assert "Only 1 were in sync, fewer than min.insync.replicas" in row["explanation"]
    assert "Its in-sync replicas shrank to 1 at" in row["explanation"]


def test_a_rolling_restart_of_the_brokers_is_none(told) -> None:
    for broker in (1, 2, 3):
        at = BEGAN + broker * 5 * MINUTE
        told.line(at, "coordinator_resigned", source_partition=DOWN, broker_id=broker)
        told.line(at, "isr_shrinking", source_partition=DOWN, isr=[1, 2], broker_id=broker)
        told.line(at + SECOND, "coordinator_loading", source_partition=DOWN, broker_id=broker % 3 + 1)
        told.line(at + 2 * SECOND, "coordinator_loaded", source_partition=DOWN, broker_id=broker % 3 + 1)
        told.line(at + MINUTE, "isr_expanding", source_partition=DOWN, isr=[1, 2, 3], broker_id=broker % 3 + 1)
        topic(at + 15 * SECOND, told, leader=-1, isr=(1, 2))
        topic(at + 30 * SECOND, told, isr=(1, 2))
        topic(at + 75 * SECOND, told)
    assert [] == told.found(PATTERN)


def test_polls_show_a_partition_without_a_leader(told) -> None:
    topic(BEGAN - MINUTE, told)
    topic(BEGAN, told, leader=-1)
    told.poll(BEGAN + 20 * MINUTE, "reassignments", "", "{}")
    (row,) = told.found(PATTERN)
    assert (BEGAN, None, BEGAN + 20 * MINUTE) == (row["started_at"], row["ended_at"], row["last_at"])
    assert (["poll"], "bounded") == (row["sources"], row["evidence"])
    assert "Polls show no leader." in row["explanation"]
    topic(BEGAN + 21 * MINUTE, told)
    (row,) = told.found(PATTERN)
    assert BEGAN + 21 * MINUTE == row["ended_at"]


@pytest.mark.parametrize(("minimum", "is_down"), [("2", True), ("1", False), (None, False)])
def test_polls_show_too_few_replicas_only_if_the_setting_is_known(told, minimum, is_down) -> None:
    if minimum is not None:
        settings = {"topic": "__consumer_offsets", "settings": {"min.insync.replicas": minimum}}
        told.poll(BEGAN - MINUTE, "topic_settings", "__consumer_offsets", json.dumps(settings))
    topic(BEGAN, told, isr=(1,))
    told.poll(BEGAN + 20 * MINUTE, "reassignments", "", "{}")
    assert is_down == bool(told.found(PATTERN))


def test_an_idle_cluster_shows_nothing(told) -> None:
    topic(BEGAN, told)
    told.line(BEGAN, "coordinator_loaded", source_partition=DOWN)
    assert [] == told.found()


def test_log_and_polls_together_are_one_incident(told) -> None:
    told.line(BEGAN, "coordinator_load_failed", source_partition=DOWN, reason=REASON)
    topic(BEGAN + 10 * SECOND, told, leader=-1)
    told.line(BEGAN + 9 * MINUTE, "coordinator_loaded", source_partition=DOWN, broker_id=2)
    topic(BEGAN + 10 * MINUTE, told)
    (row,) = told.found(PATTERN)
    assert (BEGAN, BEGAN + 10 * MINUTE, ["log", "poll"]) == (row["started_at"], row["ended_at"], row["sources"])


def test_the_order_of_rows_does_not_matter(told) -> None:
    failed_appends(told, 40, 6 * SECOND)
    told.line(BEGAN, "coordinator_load_failed", source_partition=8, reason=REASON)
    topic(BEGAN + MINUTE, told, leader=-1)
    topic(BEGAN + 9 * MINUTE, told)
    first = told.found()
    assert 2 == len(first)
    for rows in told.rows.values():
        Random(3).shuffle(rows)
    assert first == told.found()
