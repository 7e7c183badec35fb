"""A Connect cluster whose leader lacks the newest configuration: how long, and which worker is behind."""

from __future__ import annotations

import json

import pytest

from schemas.bronze import COORDINATOR_RECORDS
from schemas.silver import GENERATIONS, GROUP_EVENTS
from testing.alerts.rows import MINUTE, NOW
from tests.gold.patterns.clusters import SECOND, ClusterRows

PATTERN = "connect_config_mismatch"
BEGAN = NOW - 30 * MINUTE
DETAIL = "the leader had not read the newest connector configuration: nothing was assigned"
WORKERS = [("worker-a", 12, True), ("worker-b", 20, False), ("worker-c", 20, False)]


@pytest.fixture
def described(tmp_path) -> ClusterRows:
    described = ClusterRows(tmp_path)
    described.group("connect", 7, group_type="connect")
    return described


def refused(described: ClusterRows, times: int, every: int = 5 * SECOND, workers=WORKERS) -> None:
    members = [
        {"memberId": f"{name}-id", "clientId": name, "subscription": {"configOffset": offset}}
        for name, offset, _ in workers
    ]
    leader = next((f"{name}-id" for name, _, is_leader in workers if is_leader), None)
    body = json.dumps({"key": {"group": "connect"}, "value": {"leader": leader, "members": members}})
    for number in range(times):
        at, of_group = BEGAN + number * every, {"group_id": "connect", "incarnation": 0, "generation_id": 10 + number}
        described.add(
            GROUP_EVENTS,
            event_at=at,
            kind="failed_rebalance",
            member_id="",
            detail=DETAIL,
            evidence="observed",
            **of_group,
        )
        described.add(GENERATIONS, joined_at=at, synced_at=at, is_empty=False, source_partition=7, **of_group)
        described.add(
            COORDINATOR_RECORDS, group_id="connect", record_at=at, record_kind="GroupMetadata", is_tombstone=False,
            body=body, source_partition=7, source_offset=number,
        )  # fmt: skip


def works(described: ClusterRows, at: int) -> None:
    described.add(
        GENERATIONS, group_id="connect", incarnation=0, generation_id=999, joined_at=at, synced_at=at, is_empty=False,
        source_partition=7,
    )  # fmt: skip


def test_the_worker_that_is_behind_is_named(described) -> None:
    refused(described, 195)
    (row,) = described.found(PATTERN)
    assert ("connect", BEGAN, None, 195) == (row["subject"], row["started_at"], row["ended_at"], row["times"])
    assert (["worker-a"], "observed", ["topic"]) == (row["instances"], row["evidence"], row["sources"])
    assert (
        "The newest configuration is at offset 20; read so far: worker-a (the leader) up to 12." in row["explanation"]
    )


def test_it_ends_with_the_first_generation_that_has_work(described) -> None:
    refused(described, 10)
    works(described, BEGAN + 2 * MINUTE)
    (row,) = described.found(PATTERN)
    assert (BEGAN + 2 * MINUTE, 10) == (row["ended_at"], row["times"])
    assert "In 10 generations for 2 min from" in row["explanation"]


def test_a_leader_that_is_not_behind_the_others_could_not_read_on(described) -> None:
    refused(described, 5, workers=[(name, 20, is_leader) for name, _, is_leader in WORKERS])
    (row,) = described.found(PATTERN)
    assert [] == row["instances"]
    assert "All workers have read the configuration up to offset 20" in row["explanation"]


def test_a_configuration_that_arrives_during_a_rebalance_is_none(described) -> None:
    refused(described, 2)
    works(described, BEGAN + 11 * SECOND)
    assert [] == described.found(PATTERN)
